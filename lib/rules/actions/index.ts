import type { RulesHost } from '../host.ts';
import type { ActionType } from '../types.ts';
import { inspectAction } from './inspect.ts';
import { republishAction } from './republish.ts';

const APP = 'emqx_rule_engine';

/** The action that does nothing. */
const DO_NOTHING: ActionType = {
  name: 'do_nothing',
  app: APP,
  category: 'debug',
  title: { en: 'Do Nothing (debug)', zh: '空动作 (调试)' },
  description: {
    en: 'This action does nothing and never fails. It is for debugging.',
    zh: '此动作什么都不做，并且不会失败，用于调试。'
  },
  create: () => ({ run: () => undefined })
};

/** The built-in actions. */
export function ownActions(host: RulesHost): readonly ActionType[] {
  return [inspectAction(host, APP), republishAction(host, APP), DO_NOTHING];
}

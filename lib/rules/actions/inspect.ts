import { encodeJson } from '../../sql/json.ts';
import type { RulesHost } from '../host.ts';
import type { ActionType } from '../types.ts';

/**
 * The action that shows outputs: as an event `rule.inspected` of the broker, or on standard output if the event has no
 * listener.
 */
export function inspectAction(host: RulesHost, app: string): ActionType {
  return {
    name: 'inspect',
    app,
    category: 'debug',
    title: { en: 'Inspect (debug)', zh: '检查 (调试)' },
    description: {
      en: 'Print the output of the statement, the columns of the event and the parameters of the action.',
      zh: '打印 SQL 的输出结果、事件的字段以及动作的参数。'
    },
    create: (params, { ruleId }) => ({
      run(output, event) {
        const shown = {
          rule: ruleId,
          output: encodeJson(output),
          columns: encodeJson(event.columns()),
          params: JSON.stringify(params)
        };
        if (host.isHeard('rule.inspected')) host.emit('rule.inspected', shown);
        else
          console.log(
            `[inspect] ${shown.rule}\n  output: ${shown.output}\n  event: ${shown.columns}\n  params: ${shown.params}`
          );
      }
    })
  };
}

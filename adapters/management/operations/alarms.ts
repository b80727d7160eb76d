import type { PastAlarm, PresentAlarm } from '../../../lib/index.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import type { RevisionName } from '../revisions.ts';
import { localTime } from '../wire.ts';
import { checkNode } from './clients.ts';

const EARLIER: readonly RevisionName[] = ['earlier'];

function shown({ id, severity, title, summary, raisedAt }: PresentAlarm): Record<string, unknown> {
  return { id, desc: { severity, title, summary, timestamp: localTime(raisedAt) } };
}

function shownPast(alarm: PastAlarm): Record<string, unknown> {
  return { ...shown(alarm), clear_at: localTime(alarm.clearedAt) };
}

const present = ({ broker }: Context) => broker.alarms.present().map(shown);
const history = ({ broker }: Context) => broker.alarms.history().map(shownPast);

type AlarmList = (context: Context) => Record<string, unknown>[];

/** The alarms of each node. */
function ofAll(context: Context, alarms: AlarmList) {
  return [{ node: context.broker.settings.node, alarms: alarms(context) }];
}

/** @throws Fault unknownNode */
function ofNode(context: Context, node: string, alarms: AlarmList) {
  checkNode(context, node);
  return alarms(context);
}

/** The conditions that an operator should know, and those that have ended. */
export const ALARMS: readonly Operation[] = [
  operation({
    name: 'list_all_alarms',
    method: 'GET',
    path: '/alarms',
    descr: 'List all alarms',
    in: EARLIER,
    run: (context) => ofAll(context, present)
  }),
  operation({
    name: 'list_node_alarms',
    method: 'GET',
    path: '/alarms/:node',
    descr: 'List alarms of a node',
    in: EARLIER,
    run: (context, { params: { node } }) => ofNode(context, node, present)
  }),
  operation({
    name: 'list_all_alarms',
    method: 'GET',
    path: '/alarms/present',
    descr: 'List all alarms',
    run: (context) => ofAll(context, present)
  }),
  operation({
    name: 'list_node_alarms',
    method: 'GET',
    path: '/alarms/present/:node',
    descr: 'List alarms of a node',
    run: (context, { params: { node } }) => ofNode(context, node, present)
  }),
  operation({
    name: 'list_all_alarm_history',
    method: 'GET',
    path: '/alarms/history',
    descr: 'List all alarm history',
    run: (context) => ofAll(context, history)
  }),
  operation({
    name: 'list_node_alarm_history',
    method: 'GET',
    path: '/alarms/history/:node',
    descr: 'List alarm history of a node',
    run: (context, { params: { node } }) => ofNode(context, node, history)
  })
];

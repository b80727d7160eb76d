import Type from 'typebox';
import { dateTimeText, type PastAlarm, type PresentAlarm } from '../../../lib/index.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import type { RevisionName } from '../revisions.ts';
import { checkNode } from './clients.ts';

const time = (description: string) => Type.String({ description: `${description}: local time, YYYY-MM-DD HH:mm:ss` });
const DETAILS = Type.Object({
  severity: Type.String({ description: 'notice, warning, error or critical' }),
  title: Type.String({ description: 'A few words' }),
  summary: Type.String({ description: 'What has happened, and what can be done' }),
  timestamp: time('When the alarm was raised')
});
const PRESENT = Type.Array(Type.Object({ id: Type.String(), desc: DETAILS }));
const PAST = Type.Array(Type.Object({ id: Type.String(), desc: DETAILS, clear_at: time('When it was cleared') }));
const ofNodes = (alarms: typeof PRESENT | typeof PAST) => Type.Array(Type.Object({ node: Type.String(), alarms }));

const EARLIER: readonly RevisionName[] = ['earlier'];

function shown({ id, severity, title, summary, raisedAt }: PresentAlarm): Record<string, unknown> {
  return { id, desc: { severity, title, summary, timestamp: dateTimeText(raisedAt) } };
}

function shownPast(alarm: PastAlarm): Record<string, unknown> {
  return { ...shown(alarm), clear_at: dateTimeText(alarm.clearedAt) };
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
    data: ofNodes(PRESENT),
    run: (context) => ofAll(context, present)
  }),
  operation({
    name: 'list_node_alarms',
    method: 'GET',
    path: '/alarms/:node',
    descr: 'List alarms of a node',
    in: EARLIER,
    data: PRESENT,
    run: (context, { params: { node } }) => ofNode(context, node, present)
  }),
  operation({
    name: 'list_all_alarms',
    method: 'GET',
    path: '/alarms/present',
    descr: 'List all alarms',
    data: ofNodes(PRESENT),
    run: (context) => ofAll(context, present)
  }),
  operation({
    name: 'list_node_alarms',
    method: 'GET',
    path: '/alarms/present/:node',
    descr: 'List alarms of a node',
    data: PRESENT,
    run: (context, { params: { node } }) => ofNode(context, node, present)
  }),
  operation({
    name: 'list_all_alarm_history',
    method: 'GET',
    path: '/alarms/history',
    descr: 'List all alarm history',
    data: ofNodes(PAST),
    run: (context) => ofAll(context, history)
  }),
  operation({
    name: 'list_node_alarm_history',
    method: 'GET',
    path: '/alarms/history/:node',
    descr: 'List alarm history of a node',
    data: PAST,
    run: (context, { params: { node } }) => ofNode(context, node, history)
  })
];

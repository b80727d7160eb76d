import { dateTimeText } from '../../../lib/adapter.ts';
import type { PastAlarm, PresentAlarm } from '../../../lib/index.ts';
import { componentOf, listOf, text } from '../../rest/kit/index.ts';
import { NODE, TIME } from '../examples.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { EARLIER } from '../revisions.ts';

const time = (description: string) => text(`${description}: local time, YYYY-MM-DD HH:mm:ss`);
const DETAILS = componentOf('AlarmDetails', 'The condition of an alarm', {
  severity: text('notice, warning, error or critical'),
  title: text('A few words'),
  summary: text('A description of the condition and its remedy'),
  timestamp: time('When the alarm was raised')
});
const ID = text('The condition, for example descriptors_short:tcp:1883');
const PRESENT = listOf(componentOf('PresentAlarm', 'An alarm whose condition lasts', { id: ID, desc: DETAILS }));
const PAST = listOf(
  componentOf('PastAlarm', 'An alarm whose condition has ended', {
    id: ID,
    desc: DETAILS,
    clear_at: time('When it was cleared')
  })
);

/** Alarms of the examples. */
const LOW_PRESSURE = {
  id: 'pump_pressure',
  desc: { severity: 'warning', title: 'Low pressure', summary: 'Pump 1 is at 0.8 bar', timestamp: TIME }
};
const OPEN_DOOR = {
  id: 'door_open',
  desc: { severity: 'notice', title: 'Door is open', summary: 'The door of the pump room', timestamp: TIME },
  clear_at: TIME
};

function shown({ id, severity, title, summary, raisedAt }: PresentAlarm): Record<string, unknown> {
  return { id, desc: { severity, title, summary, timestamp: dateTimeText(raisedAt) } };
}

function shownPast(alarm: PastAlarm): Record<string, unknown> {
  return { ...shown(alarm), clear_at: dateTimeText(alarm.clearedAt) };
}

const present = ({ broker }: Context) => broker.alarms.present().map(shown);
const history = ({ broker }: Context) => broker.alarms.history().map(shownPast);

/** Active and past alarms. */
export const ALARMS: readonly Operation[] = [
  operation({
    name: 'list_node_alarms',
    ofAllNodes: { field: 'alarms', name: 'list_all_alarms', descr: 'List all alarms' },
    method: 'GET',
    path: '/alarms/:node',
    descr: 'List alarms of a node',
    example: { params: { node: NODE }, data: [LOW_PRESSURE] },
    in: EARLIER,
    data: PRESENT,
    run: present
  }),
  operation({
    name: 'list_node_alarms',
    ofAllNodes: {
      field: 'alarms',
      name: 'list_all_alarms',
      ctl: { 'alarms list': 'id desc.severity desc.title desc.summary desc.timestamp' },
      descr: 'List all alarms'
    },
    method: 'GET',
    path: '/alarms/present/:node',
    descr: 'List alarms of a node',
    example: { params: { node: NODE }, data: [LOW_PRESSURE] },
    data: PRESENT,
    run: present
  }),
  operation({
    name: 'list_node_alarm_history',
    ofAllNodes: {
      field: 'alarms',
      name: 'list_all_alarm_history',
      ctl: { 'alarms history': 'id desc.severity desc.title desc.summary desc.timestamp clear_at' },
      descr: 'List all alarm history'
    },
    method: 'GET',
    path: '/alarms/history/:node',
    descr: 'List alarm history of a node',
    example: { params: { node: NODE }, data: [OPEN_DOOR] },
    data: PAST,
    run: history
  })
];

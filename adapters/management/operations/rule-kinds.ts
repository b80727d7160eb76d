import type { RulesApi } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { anyObject, componentOf, listOf, text } from '../../rest/kit/index.ts';
import * as examples from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Operation, operation } from '../operation.ts';
import {
  ACTION,
  LOCALIZED,
  RESOURCE,
  RESOURCE_TYPE,
  shownAction,
  shownResource,
  shownResourceType
} from './resource-forms.ts';

const EVENT = componentOf('RuleEvent', 'A topic from which rules select', {
  event: text('The topic of the event after FROM; $events/message_publish stands for topics of messages'),
  title: LOCALIZED,
  description: LOCALIZED,
  test_columns: anyObject('Columns, with their values in a test'),
  columns: listOf(text(), 'The columns'),
  sql_example: text('A statement')
});

/** @throws Fault notFound if the type of resources does not exist */
async function checkType({ rules }: { readonly rules: RulesApi }, type: string): Promise<void> {
  if ((await rules.resourceTypes()).some(({ name }) => name === type)) return;
  throw new Fault('notFound', `Resource Type ${type} Not Found`);
}

const { type } = examples.GIVEN_RESOURCE;

/** The kinds of actions, resources and events of the rule engine. */
export const RULE_KINDS: readonly Operation[] = [
  operation({
    name: 'list_actions',
    method: 'GET',
    path: '/actions',
    ctl: { 'actions list [TYPE]': 'name for types app description.en' },
    descr: 'A list of all actions',
    data: listOf(ACTION),
    example: { data: [examples.RULE_ACTION] },
    run: async ({ broker }) => (await broker.rules.actions()).map(shownAction)
  }),
  operation({
    name: 'show_action',
    method: 'GET',
    path: '/actions/:name',
    ctl: 'actions show NAME',
    descr: 'Show an action',
    data: ACTION,
    example: { params: { name: 'inspect' }, data: examples.RULE_ACTION },
    run: async ({ broker }, { params }) => {
      const found = (await broker.rules.actions()).find(({ name }) => name === params.name);
      if (found === undefined) throw new Fault('notFound', `Action ${params.name} Not Found`);
      return shownAction(found);
    }
  }),
  operation({
    name: 'list_resource_types',
    method: 'GET',
    path: '/resource_types',
    ctl: { 'resources types [NAME]': 'name provider description.en' },
    descr: 'List all resource types',
    data: listOf(RESOURCE_TYPE),
    example: {},
    run: async ({ broker }) => (await broker.rules.resourceTypes()).map(shownResourceType)
  }),
  operation({
    name: 'show_resource_type',
    method: 'GET',
    path: '/resource_types/:name',
    ctl: 'resources types [NAME]',
    descr: 'Show a resource type',
    data: RESOURCE_TYPE,
    example: { params: { name: type } },
    run: async ({ broker }, { params }) => {
      await checkType(broker, params.name);
      const types = await broker.rules.resourceTypes();
      return types.filter(({ name }) => name === params.name).map(shownResourceType)[0];
    }
  }),
  operation({
    name: 'list_resources_by_type',
    method: 'GET',
    path: '/resource_types/:type/resources',
    ctl: 'resources list [TYPE]',
    descr: 'List all resources of a resource type',
    data: listOf(RESOURCE),
    example: { params: { type }, data: [examples.RESOURCE] },
    run: async (context, { params }) => {
      const { broker } = context;
      await checkType(broker, params.type);
      const resources = await broker.rules.resources.list(params.type);
      return new Listing(resources, (resource) => shownResource(resource, context));
    }
  }),
  operation({
    name: 'list_actions_by_type',
    method: 'GET',
    path: '/resource_types/:type/actions',
    ctl: 'actions list [TYPE]',
    descr: 'List all actions of a resource type',
    data: listOf(ACTION),
    example: { params: { type } },
    run: async ({ broker }, { params }) => {
      await checkType(broker, params.type);
      return (await broker.rules.actions()).filter(({ types }) => types.includes(params.type)).map(shownAction);
    }
  }),
  operation({
    name: 'list_events',
    method: 'GET',
    path: '/rule_events',
    ctl: { 'rules events': 'event columns' },
    descr: 'List all events with detailed info',
    data: listOf(EVENT),
    example: {},
    run: async ({ broker }) =>
      (await broker.rules.events()).map(({ event, title, description, testColumns, columns, example }) => ({
        event,
        title,
        description,
        test_columns: testColumns,
        columns,
        sql_example: example
      }))
  })
];

import { nearest } from '../../../lib/adapter.ts';
import { BrokerError, type ResourceState, type RulesApi } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { anyObject, anyOf, flag, listOf, objectOf, optional, text } from '../../rest/kit/index.ts';
import * as examples from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Operation, operation } from '../operation.ts';
import { RESOURCE, RESOURCE_WITH_STATUS, shownResource } from './resource-forms.ts';
import { isTest, TEST } from './rule-faults.ts';

const CONFIG = anyObject('The parameters, as defined by the type');
const DESCRIPTION = text('A description', { default: '' });
const GIVEN = objectOf({
  id: optional(
    text(
      'The id: 1 to 64 letters, digits, ":", "_", "-" and ".", except "." and ".."; default: "resource:" and 8 hexadecimal digits'
    )
  ),
  type: text('The name of the type'),
  config: optional(CONFIG),
  description: optional(DESCRIPTION),
  test: TEST
});
const CHANGE = objectOf({
  config: optional(anyObject('All parameters; ****** for a secret keeps the current value')),
  description: optional(DESCRIPTION)
});

const params = { id: examples.RESOURCE.id };
const unknown = (id: string) => new Fault('notFound', `Resource ${id} Not Found`);

/**
 * Get a resource.
 * @throws Fault notFound
 */
async function resourceOf({ rules }: { readonly rules: RulesApi }, id: string): Promise<ResourceState> {
  const resource = await rules.resources.get(id);
  if (resource === undefined) throw unknown(id);
  return resource;
}

/**
 * Check that the type named by a request exists.
 * @throws Fault badArguments
 */
async function checkType({ rules }: { readonly rules: RulesApi }, type: string): Promise<void> {
  const names = (await rules.resourceTypes()).map(({ name }) => name);
  if (names.includes(type)) return;
  const near = nearest(type, names);
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  throw new Fault('badArguments', `Resource Type ${type} Not Found${hint}`);
}

/**
 * The fault for a target that cannot be reached.
 * @param message in both modes; in the documented mode the reason follows
 */
const down = (kind: 'testFailed' | 'badArguments', message: string) => (error: unknown) => {
  if (!(error instanceof BrokerError) || error.code !== 'RESOURCE_DOWN') throw error;
  throw new Fault(kind, `${message}: ${error.message}`, message);
};

/** The resources of the rule engine: the targets of actions outside of this process. */
export const RESOURCES: readonly Operation[] = [
  operation({
    name: 'create_resource',
    method: 'POST',
    path: '/resources',
    ctl: { 'resources add FILE --id': '', 'resources test FILE test=true': '' },
    descr: 'Create a resource',
    query: objectOf({
      test: optional(flag('Find out whether the target can be reached, and make no resource'))
    }),
    body: GIVEN,
    shown: RESOURCE_WITH_STATUS,
    data: optional(anyOf([RESOURCE])),
    example: { body: { ...examples.GIVEN_RESOURCE, test: false } },
    run: async (context, { query, body }) => {
      const { broker } = context;
      const { id, type, config = {}, description } = body;
      const { resources } = broker.rules;
      await checkType(broker, type);
      const resource = { id, type, config, description };
      if (!isTest(query.test ?? body.test)) return shownResource(await resources.create(resource), context);
      return resources.test(resource).catch(down('testFailed', 'Test Creating Resource Failed'));
    }
  }),
  operation({
    name: 'list_resources',
    method: 'GET',
    path: '/resources',
    ctl: { 'resources list [TYPE]': 'id type is_alive waiting description last_error' },
    descr: 'A list of all resources',
    data: listOf(RESOURCE),
    example: { data: [examples.RESOURCE] },
    run: async (context) => {
      const resources = await context.broker.rules.resources.list();
      return new Listing(resources, (resource) => shownResource(resource, context));
    }
  }),
  operation({
    name: 'show_resource',
    method: 'GET',
    path: '/resources/:id',
    ctl: 'resources show ID',
    descr: 'Show a resource, and whether its target can be reached',
    data: RESOURCE_WITH_STATUS,
    example: { params, data: { ...examples.RESOURCE, status: [{ node: examples.NODE, is_alive: true }] } },
    run: async (context, { params: { id } }) => {
      const { broker } = context;
      await resourceOf(broker, id);
      const is_alive = await broker.rules.resources.check(id);
      return {
        ...shownResource(await resourceOf(broker, id), context),
        is_alive,
        status: [{ node: broker.settings.node, is_alive }]
      };
    }
  }),
  operation({
    name: 'update_resource',
    method: 'PUT',
    path: '/resources/:id',
    ctl: 'resources change ID FILE',
    descr: 'Update a resource',
    body: CHANGE,
    shown: RESOURCE_WITH_STATUS,
    example: { params, body: { description: 'The server in Berlin' } },
    run: async ({ broker }, { params: { id }, body: { config, description } }) => {
      await resourceOf(broker, id);
      await broker.rules.resources.update(id, {
        ...(config === undefined ? {} : { config }),
        ...(description === undefined ? {} : { description })
      });
    }
  }),
  operation({
    name: 'start_resource',
    method: 'POST',
    path: '/resources/:id',
    ctl: 'resources start ID',
    descr: 'Start a resource: connect to its target now',
    example: { params },
    run: async ({ broker }, { params: { id } }) => {
      await resourceOf(broker, id);
      await broker.rules.resources.start(id).catch(down('badArguments', `Start Resource ${id} Failed`));
    }
  }),
  operation({
    name: 'delete_resource',
    method: 'DELETE',
    path: '/resources/:id',
    ctl: 'resources remove ID',
    descr: 'Delete a resource',
    example: { params },
    run: async ({ broker, isOriginal }, { params: { id } }) => {
      if (!(await broker.rules.resources.delete(id)) && !isOriginal) throw unknown(id);
    }
  }),
  operation({
    name: 'get_resource_status',
    method: 'GET',
    path: '/resource_status/:id',
    descr: 'Find out whether the target of a resource can be reached at present',
    data: objectOf({ is_alive: flag('True if it can be reached') }),
    example: { params, data: { is_alive: true } },
    run: async ({ broker }, { params: { id } }) => {
      await resourceOf(broker, id);
      return { is_alive: await broker.rules.resources.check(id) };
    }
  })
];

import type { Static } from 'typebox';
import type { DocumentedParam, ParamTable } from '../../../lib/adapter.ts';
import type { ActionInfo, ResourceState, ResourceTypeInfo } from '../../../lib/index.ts';
import { anyObject, componentOf, flag, integer, listOf, oneOf, optional, text } from '../../rest/kit/index.ts';
import type { Context } from '../operation.ts';

/** A text for display, in answers. */
export const LOCALIZED = componentOf('LocalizedText', 'A text in two languages', {
  en: text('In English'),
  zh: text('In Chinese')
});
const PARAMS = anyObject(
  'The parameters by name. Each has type, title and description, and may have required, default, enum, secret and more'
);

/** A kind of actions, in answers. */
export const ACTION = componentOf('RuleAction', 'A kind of actions of rules', {
  name: text('The name'),
  app: text('The provider'),
  for: text('The events that it is meant for; $any: all'),
  types: listOf(text(), 'The types of resources that it can use'),
  category: oneOf(['debug', 'data_forward', 'other'], 'The purpose'),
  params: PARAMS,
  title: LOCALIZED,
  description: LOCALIZED
});

/** A type of resources, in answers. */
export const RESOURCE_TYPE = componentOf('ResourceType', 'A type of resources', {
  name: text('The name'),
  provider: text('The provider'),
  params: PARAMS,
  title: LOCALIZED,
  description: LOCALIZED
});

const RESOURCE_FIELDS = {
  id: text('The id'),
  type: text('The name of the type'),
  config: anyObject('The parameters as they were given, with ****** for secrets'),
  description: text('A description'),
  created_at: integer('When it was created, in milliseconds since 1970'),
  is_alive: flag('True if its target could be reached when that was tried last'),
  waiting: integer('Number of queued entries'),
  last_error: optional(text('Why its target could not be reached, or why the last delivery has failed'))
};

/** A resource, in lists. */
export const RESOURCE = componentOf(
  'Resource',
  'A resource of rules: a target that several actions can use',
  RESOURCE_FIELDS
);

/** A resource that is looked up. */
export const RESOURCE_WITH_STATUS = componentOf('ResourceWithStatus', 'A resource of rules, with its status', {
  ...RESOURCE_FIELDS,
  status: listOf(
    componentOf('ResourceStatus', 'The status of a resource on a node', {
      node: text('Name of the node'),
      is_alive: flag('True if its target can be reached at present')
    }),
    'The status on each node'
  )
});

/** A kind of actions, in the form of answers. */
export function shownAction(action: ActionInfo): Static<typeof ACTION> {
  const { name, app, for: event, types, category, title, description } = action;
  const params = shownParams(action.params);
  return { name, app, for: event, types: [...types], category, params, title, description };
}

/** A type of resources, in the form of answers. */
export function shownResourceType(type: ResourceTypeInfo): Static<typeof RESOURCE_TYPE> {
  const { name, provider, params, title, description } = type;
  return { name, provider, params: shownParams(params), title, description };
}

function shownParams(table: ParamTable): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, shownParam(row)]));
}

function shownParam({ isSecret, schema, ...row }: DocumentedParam): object {
  return { ...row, ...(isSecret && { secret: true }), ...(schema && { schema: shownParams(schema) }) };
}

/** A resource, in the form of lists; as for rules, without messages of errors for some callers. */
export function shownResource(resource: ResourceState, { hidesPayloads }: Context): Static<typeof RESOURCE> {
  const { id, type, config, description, createdAt, isAlive, size, lastError } = resource;
  return {
    id,
    type,
    config: { ...config },
    description,
    created_at: createdAt,
    is_alive: isAlive,
    waiting: size,
    ...(lastError && !hidesPayloads && { last_error: lastError.message })
  };
}

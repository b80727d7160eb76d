import type { Static } from 'typebox';
import * as Type from 'typebox';
import type { DocumentedParam, ParamTable } from '../../../lib/adapter.ts';
import type { ActionInfo, ResourceState, ResourceTypeInfo } from '../../../lib/index.ts';
import { recordOf } from '../../rest/index.ts';

const text = (description: string) => Type.String({ description });
const fields = (description: string) => recordOf(Type.Unknown(), { description });

const LOCALIZED = Type.Object({ en: Type.String(), zh: Type.String() }, { title: 'LocalizedText' });
const PARAMS = fields(
  'The parameters by name. Each has type, title and description, and may have required, default, enum and more'
);

/** A kind of actions, in answers. */
export const ACTION = Type.Object(
  {
    name: text('The name'),
    app: text('The provider'),
    for: text('The events that it is meant for; $any: all'),
    types: Type.Array(Type.String(), { description: 'The types of resources that it can use' }),
    category: Type.Enum(['debug', 'data_forward', 'other'], { description: 'The purpose' }),
    params: PARAMS,
    title: LOCALIZED,
    description: LOCALIZED
  },
  { title: 'RuleAction' }
);

/** A type of resources, in answers. */
export const RESOURCE_TYPE = Type.Object(
  {
    name: text('The name'),
    provider: text('The provider'),
    params: PARAMS,
    title: LOCALIZED,
    description: LOCALIZED
  },
  { title: 'ResourceType' }
);

const RESOURCE_FIELDS = {
  id: text('The id'),
  type: text('The name of the type'),
  config: fields('The parameters as they were given, with ****** for secrets'),
  description: text('A description'),
  created_at: Type.Integer({ description: 'When it was created, in milliseconds since 1970' }),
  is_alive: Type.Boolean({ description: 'True if its target could be reached when that was tried last' }),
  waiting: Type.Integer({ description: 'Number of queued entries' }),
  last_error: Type.Optional(text('Why its target could not be reached, or why the last delivery has failed'))
};

/** A resource, in lists. */
export const RESOURCE = Type.Object(RESOURCE_FIELDS, { title: 'Resource' });

/** A resource that is looked up. */
export const RESOURCE_WITH_STATUS = Type.Object(
  {
    ...RESOURCE_FIELDS,
    status: Type.Array(
      Type.Object(
        {
          node: text('Name of the node'),
          is_alive: Type.Boolean({ description: 'True if its target can be reached at present' })
        },
        { title: 'ResourceStatus' }
      )
    )
  },
  { title: 'ResourceWithStatus' }
);

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

function shownParam({ isSecret: _, schema, ...row }: DocumentedParam): object {
  return schema === undefined ? row : { ...row, schema: shownParams(schema) };
}

/** A resource, in the form of lists. */
export function shownResource(resource: ResourceState): Static<typeof RESOURCE> {
  const { id, type, config, description, createdAt, isAlive, size, lastError } = resource;
  return {
    id,
    type,
    config: { ...config },
    description,
    created_at: createdAt,
    is_alive: isAlive,
    waiting: size,
    ...(lastError && { last_error: lastError.message })
  };
}

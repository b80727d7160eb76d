import type { Static } from 'typebox';
import * as Type from 'typebox';
import type { Application, ApplicationChange } from '../../../lib/index.ts';
import { any, anyOf, componentOf, flag, integer, listOf, objectOf, optional, text } from '../../rest/kit/index.ts';
import { msOf } from '../moment.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { checkDeleted, lookedUp } from '../records.ts';

/** The value that is written for a time that is not set. */
const UNDEFINED = 'undefined';

const CHANGE = {
  name: optional(text('The name for people')),
  desc: optional(text('A description')),
  status: optional(flag('True if the application may send requests')),
  expired: optional(
    Type.Unsafe<number | null | typeof UNDEFINED>({
      anyOf: [{ type: 'integer' }, { type: 'null' }, { const: UNDEFINED }],
      description:
        'The time from which its requests are refused, in seconds or milliseconds since 1970; null or "undefined": never'
    })
  )
};
const APPLICATION = objectOf({
  app_id: Type.String({
    minLength: 1,
    maxLength: 256,
    pattern: '^[^:]*$', // in HTTP Basic credentials, a colon follows the id
    description: 'The id, with which it sends requests'
  }),
  secret: optional(text('The secret; without it, a random one is made', { min: 1 })),
  ...CHANGE
});
/** The original products generate a secret in place of an empty one. */
const ORIGINAL_APPLICATION = objectOf({ ...APPLICATION.properties, secret: optional(text()) });
const UPDATE = objectOf({
  secret: optional(text('The new secret; the previous one is refused from then on', { min: 1 })),
  ...CHANGE
});
/** The original products ignore a secret. */
const ORIGINAL_UPDATE = objectOf({ secret: optional(any()), ...CHANGE });

const SHOWN = componentOf('Application', 'An application that may use the management interface', {
  app_id: text('The id'),
  name: text('The name for people'),
  desc: text('A description'),
  status: flag('True if the application may send requests'),
  expired: anyOf(
    [integer(), Type.Literal(UNDEFINED)],
    'The time from which its requests are refused, in seconds since 1970; "undefined": never'
  )
});
/** The application of the examples. */
const REPORTS = { app_id: 'reports', name: 'Reports', desc: 'Monthly reports', status: true, expired: UNDEFINED };

type Change = Static<Type.TObject<typeof CHANGE>>;

/** Only the given fields are changed. */
function changeOf(
  { isOriginal }: Context,
  { name, desc, status, expired }: Change,
  present?: Application
): ApplicationChange {
  const change = { name, description: desc, isEnabled: status };
  if (expired === undefined || (present !== undefined && expired === expiredOf(present))) return change;
  if (typeof expired !== 'number') return { ...change, expiresAt: undefined };
  return { ...change, expiresAt: isOriginal ? expired * 1000 : msOf(expired) };
}

function expiredOf({ expiresAt }: Application): number | typeof UNDEFINED {
  return expiresAt === undefined ? UNDEFINED : Math.floor(expiresAt / 1000);
}

function shown(application: Application): Record<string, unknown> {
  const { id, name, description, isEnabled } = application;
  return { app_id: id, name, desc: description, status: isEnabled, expired: expiredOf(application) };
}

const named = (id: string) => `application "${id}"`;

/**
 * The applications that may use the interface. A secret is shown once, when its application is added: only its hash is
 * stored.
 */
export const APPLICATIONS: readonly Operation[] = [
  operation({
    name: 'add_app',
    method: 'POST',
    path: '/apps',
    ctl: 'apps add ID=app_id --name',
    descr: 'Add Application',
    example: {
      body: { app_id: 'billing', name: 'Billing', secret: 'a long and random secret' },
      data: { secret: 'a long and random secret' }
    },
    grantsAccess: true,
    isForApplications: true,
    body: APPLICATION,
    originalBody: ORIGINAL_APPLICATION,
    data: objectOf({ secret: text('The secret, which cannot be read later') }),
    // misspelt in the original
    originalAnswer: ({ kind }) => (kind === 'exists' ? { code: 102, message: 'alread_existed' } : undefined),
    run: (context, { body: { app_id: id, secret, ...change } }) =>
      context.broker.applications.create({ id, ...(secret ? { secret } : {}), ...changeOf(context, change) })
  }),
  operation({
    name: 'del_app',
    method: 'DELETE',
    path: '/apps/:appid',
    ctl: 'apps remove ID',
    descr: 'Delete Application',
    example: { params: { appid: 'reports' } },
    isForApplications: true,
    run: async (context, { params: { appid } }) =>
      checkDeleted(context, await context.broker.applications.delete(appid), named(appid))
  }),
  operation({
    name: 'list_apps',
    method: 'GET',
    path: '/apps',
    ctl: { 'apps list': 'app_id name desc status expired' },
    descr: 'List Applications',
    example: { data: [{ ...REPORTS, app_id: 'app', name: 'Examples', desc: '' }, REPORTS] },
    isForApplications: true,
    data: listOf(SHOWN),
    run: ({ broker }) => [...broker.applications].map(shown)
  }),
  operation({
    name: 'lookup_app',
    method: 'GET',
    path: '/apps/:appid',
    descr: 'Lookup Application',
    example: { params: { appid: 'reports' }, data: REPORTS },
    isForApplications: true,
    data: SHOWN,
    run: (context, { params: { appid } }) => {
      const found = context.broker.applications.get(appid);
      return lookedUp(context, found && shown(found), named(appid));
    }
  }),
  operation({
    name: 'update_app',
    method: 'PUT',
    path: '/apps/:appid',
    descr: 'Update Application',
    example: { params: { appid: 'reports' }, body: { desc: 'Weekly reports', status: false } },
    grantsAccess: true,
    isForApplications: true,
    body: UPDATE,
    shown: SHOWN,
    named: { app_id: 'appid' },
    originalBody: ORIGINAL_UPDATE,
    originalAnswer: ({ kind }) => (kind === 'unknownRecord' ? { code: 102, message: 'not_found' } : undefined),
    run: async (context, { params: { appid }, body: { secret, ...change } }) => {
      const wanted = context.isOriginal ? undefined : secret;
      const { applications } = context.broker;
      await applications.update(appid, {
        ...changeOf(context, change, applications.get(appid)),
        ...(wanted !== undefined && { secret: wanted })
      });
    }
  })
];

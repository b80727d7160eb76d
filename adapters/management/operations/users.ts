import { Fault } from '../../rest/index.ts';
import type { OriginalAnswer } from '../../rest/kit/index.ts';
import { componentOf, listOf, objectOf, optional, text } from '../../rest/kit/index.ts';
import { type Operation, operation } from '../operation.ts';
import { checkName, checkNotEmpty } from '../records.ts';

const USERNAME = text('The name of the user');
const PASSWORD = text('The password');
const TAGS = text('Any text; "administrator" makes the user one, others may only read', { default: '' });

/** The answers of the original products about users. */
function originalAnswer({ kind }: Fault): OriginalAnswer | undefined {
  if (kind === 'unknownRecord') return { message: 'Username Not Found' };
  if (kind === 'exists') return { message: 'Username Already Exist' };
  if (kind === 'administrator') return { message: 'Cannot delete admin' };
  return kind === 'wrongOldPassword' ? { message: 'Password Error' } : undefined;
}

/** The users of the management interface. */
export const USERS: readonly Operation[] = [
  operation({
    name: 'auth_user',
    method: 'POST',
    path: '/auth',
    descr: 'Authenticate an user',
    example: { body: { username: 'ann', password: 'password of ann' } },
    body: objectOf({ username: USERNAME, password: PASSWORD }),
    isForViewer: () => true,
    originalAnswer: ({ kind, original }) => {
      if (kind === 'missingParameter' || kind === 'emptyCredentials')
        return { message: original === 'password' ? 'Password undefined' : 'Username undefined' };
      return kind === 'unauthorized' && original !== undefined ? { message: original } : undefined;
    },
    run: async ({ broker }, { body: { username, password } }) => {
      checkNotEmpty({ username, password });
      if ((await broker.users.verify(username, password)) !== undefined) return;
      const original = broker.users.get(username) === undefined ? 'Username Not Found' : 'Password Error';
      throw new Fault('unauthorized', 'the user name or the password is wrong', original);
    }
  }),
  operation({
    name: 'create_user',
    method: 'POST',
    path: '/users',
    ctl: 'users add NAME=username --tags',
    descr: 'Create an user',
    grantsAccess: true,
    example: { body: { username: 'eve', password: 'password of eve', tags: 'viewer' } },
    body: objectOf({
      username: USERNAME,
      password: PASSWORD,
      tags: optional(TAGS)
    }),
    originalAnswer: (fault) =>
      fault.kind === 'missingParameter' || fault.kind === 'emptyCredentials'
        ? { message: 'Username or password undefined' }
        : originalAnswer(fault),
    run: (context, { body: { username, password, tags } }) => {
      checkNotEmpty({ username, password });
      checkName(context, 'username', username);
      return context.broker.users.create(username, password, tags);
    }
  }),
  operation({
    name: 'list_users',
    method: 'GET',
    path: '/users',
    ctl: { 'users list': 'username tags' },
    descr: 'List users',
    example: {
      data: [
        { username: 'ann', tags: 'administrator' },
        { username: 'bob', tags: 'viewer' }
      ]
    },
    data: listOf(componentOf('User', 'A user of the management interface', { username: USERNAME, tags: TAGS })),
    run: ({ broker }) => [...broker.users].map(({ name, tags }) => ({ username: name, tags }))
  }),
  operation({
    name: 'update_user',
    method: 'PUT',
    path: '/users/:name',
    descr: 'Update an user',
    grantsAccess: true,
    example: { params: { name: 'bob' }, body: { tags: 'administrator' } },
    body: objectOf({ tags: TAGS }),
    named: { username: 'name' },
    // the original products change the tags of every user
    originalAnswer: (fault) => (fault.kind === 'administrator' ? { message: fault.message } : originalAnswer(fault)),
    run: ({ broker }, { params: { name }, body: { tags } }) => broker.users.update(name, tags)
  }),
  operation({
    name: 'delete_user',
    method: 'DELETE',
    path: '/users/:name',
    ctl: 'users remove NAME',
    descr: 'Delete an user',
    example: { params: { name: 'bob' } },
    originalAnswer,
    run: ({ broker }, { params: { name } }) => broker.users.delete(name)
  }),
  operation({
    name: 'change_pwd',
    method: 'PUT',
    path: '/change_pwd/:username',
    descr: 'Change password for an user',
    example: {
      params: { username: 'bob' },
      body: { old_pwd: 'password of bob', new_pwd: 'another password' }
    },
    body: objectOf({
      old_pwd: text('The password until now'),
      new_pwd: text('The password from now on')
    }),
    // only users have a password here, whatever the id of another caller is
    isForViewer: ({ kind, id }, { username }) => kind === 'user' && id === username,
    originalAnswer,
    run: ({ broker }, { params: { username }, body: { old_pwd: before, new_pwd: after } }) => {
      checkNotEmpty({ new_pwd: after });
      return broker.users.changePassword(username, before, after);
    }
  })
];

/** Operations on users that the original products do not have. */
export const USER_PASSWORDS: readonly Operation[] = [
  operation({
    name: 'set_password',
    method: 'PUT',
    path: '/x/users/:name/password',
    ctl: 'users password NAME',
    descr: 'Set the password of a user without the old one; logins of the user to the console end',
    grantsAccess: true,
    example: { params: { name: 'bob' }, body: { password: 'another password' } },
    body: objectOf({ password: PASSWORD }),
    run: ({ broker }, { params: { name }, body: { password } }) => {
      checkNotEmpty({ password });
      return broker.users.setPassword(name, password);
    }
  })
];

import { InvalidInput } from '../../../lib/index.ts';
import type { ManagementClient } from '../../management/client/index.ts';
import { type Action, type ActionContext, choice } from './action.ts';

const ACCESS = ['allow', 'deny'] as const;
const ACTIONS_OF_RULES = ['pub', 'sub', 'pubsub'] as const;
const SHORT_FORMS = new Map([
  ['publish', 'pub'],
  ['subscribe', 'sub']
]);

/** The subject of a rule: a client id, a user name, or all. */
function subjectOf({ client: clientid, user: username }: ActionContext['flags']): {
  clientid?: string;
  username?: string;
} {
  if (clientid !== undefined && username !== undefined)
    throw new InvalidInput('FLAG_INVALID', '--client', 'one of --client and --user', clientid);
  if (clientid !== undefined) return { clientid };
  return username === undefined ? {} : { username };
}

async function* allRules(client: ManagementClient): AsyncGenerator<object> {
  yield* client.list('/acl/clientid');
  yield* client.list('/acl/username');
  yield* client.list('/acl/$all');
}

/** Access control: who may do what. */
export const ACCESS_CONTROL: readonly Action[] = [
  {
    usage: 'ban list',
    about: 'list the bans',
    columns: ['who', 'as', 'reason', 'by', 'at', 'until'],
    times: 's',
    run: ({ client }) => client.list('/banned')
  },
  {
    usage: 'ban add WHO',
    about: 'ban a client id, user name, or IP address or network',
    flags: ['as', 'reason', 'seconds'],
    run: async ({ client, flags: { as, reason, seconds } }, [who]) => {
      const until = seconds === undefined ? undefined : Math.floor(Date.now() / 1000) + seconds;
      await client.post('/banned', { body: { who, as, reason, until } });
      return undefined;
    }
  },
  {
    usage: 'ban remove WHO',
    about: 'remove a ban',
    flags: ['as'],
    run: ({ client, flags: { as } }, [who]) => client.delete('/banned/{as}/{who}', { params: { as, who } })
  },
  {
    usage: 'acl list',
    about: 'list the access rules set at run time',
    columns: ['clientid', 'username', 'all', 'topic', 'action', 'access'],
    run: ({ client }) => allRules(client)
  },
  {
    usage: 'acl add ACCESS ACTION TOPIC',
    about: 'allow or deny pub, sub or pubsub for a topic filter: to a client id, a user name, or to all',
    flags: ['client', 'user'],
    run: async ({ client, flags }, [access, action, topic]) => {
      const rule = {
        access: choice(access, ACCESS, 'ACCESS'),
        action: choice(SHORT_FORMS.get(action) ?? action, ACTIONS_OF_RULES, 'ACTION'),
        topic
      };
      await client.post('/acl', { body: { ...subjectOf(flags), ...rule } });
      return undefined;
    }
  },
  {
    usage: 'acl remove TOPIC',
    about: 'remove a rule',
    flags: ['client', 'user'],
    run: ({ client, flags }, [topic]) => {
      const { clientid, username } = subjectOf(flags);
      if (clientid !== undefined)
        return client.delete('/acl/clientid/{clientid}/topic/{topic}', { params: { clientid, topic } });
      if (username !== undefined)
        return client.delete('/acl/username/{username}/topic/{topic}', { params: { username, topic } });
      return client.delete('/acl/$all/topic/{topic}', { params: { topic } });
    }
  },
  {
    usage: 'users list',
    about: 'list the users of the management interface',
    columns: ['username', 'tags'],
    run: ({ client }) => client.get('/users')
  },
  {
    usage: 'users add NAME',
    about: 'add a user; the password is asked for, or read from standard input',
    flags: ['tags'],
    run: async ({ client, flags: { tags }, password }, [username]) =>
      client.post('/users', { body: { username, password: await password(username), tags } })
  },
  {
    usage: 'users remove NAME',
    about: 'remove a user',
    run: ({ client }, [name]) => client.delete('/users/{name}', { params: { name } })
  },
  {
    usage: 'apps list',
    about: 'list the applications',
    columns: ['app_id', 'name', 'desc', 'status', 'expired'],
    times: 's',
    run: ({ client }) => client.get('/apps')
  },
  {
    usage: 'apps add ID',
    about: 'add an application, and print its secret, which cannot be read later',
    flags: ['name'],
    run: async ({ client, flags: { name } }, [app_id]) => ({
      record: await client.post('/apps', { body: { app_id, name } })
    })
  },
  {
    usage: 'apps remove ID',
    about: 'remove an application',
    run: ({ client }, [appid]) => client.delete('/apps/{appid}', { params: { appid } })
  }
];

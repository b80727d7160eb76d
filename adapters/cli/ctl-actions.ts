import { BrokerError, InvalidInput } from '../../lib/index.ts';
import { type AnyRequest, isStream, type ManagementClient } from '../management/client/index.ts';
import type { Output } from './ctl-output.ts';
import { type FlagValues, flag } from './flags.ts';

/** The flags of single actions. */
export const ACTION_FLAGS = {
  qos: flag('integer', 0, 'sub, pub: QoS', { short: 'q', value: 'QOS', min: 0, max: 2 }),
  retain: flag('boolean', false, 'pub: publish as the retained message of the topic', { short: 'r' }),
  as: flag('choice', 'clientid' as 'clientid' | 'username' | 'peerhost', 'ban: what WHO is', {
    choices: ['clientid', 'username', 'peerhost'],
    value: 'clientid|username|peerhost'
  }),
  reason: flag('text', undefined as string | undefined, 'ban add: the reason', { value: 'TEXT' }),
  seconds: flag('integer', undefined as number | undefined, 'ban add: how long, in seconds [300]', {
    value: 'N',
    min: 1
  }),
  client: flag('text', undefined as string | undefined, 'acl: the rule is for this client id', { value: 'ID' }),
  user: flag('text', undefined as string | undefined, 'acl: the rule is for this user name', { value: 'NAME' }),
  tags: flag('text', undefined as string | undefined, 'users: "administrator", or others who may only read', {
    value: 'TEXT'
  }),
  name: flag('text', undefined as string | undefined, 'apps add: the name for people', { value: 'TEXT' })
};

/** What an action works with. */
export interface ActionContext {
  readonly client: ManagementClient<'later'>;
  readonly flags: FlagValues<typeof ACTION_FLAGS>;
  /** Read a password from the terminal or standard input. @param owner whose it is */
  password(owner: string): Promise<string>;
}

/** An action of `embermq ctl`. */
export interface Action {
  /** The words of the command line: `clients show ID`. Words in capitals are arguments, those in brackets may be left out. */
  readonly usage: string;
  readonly about: string;
  readonly columns?: readonly string[];
  run(context: ActionContext, args: readonly string[]): Promise<Output> | Output;
}

/** Rows of operations that not every version has. */
async function* rows(client: ManagementClient, path: string, request?: AnyRequest): AsyncGenerator<object> {
  const { data } = await client.request('GET', path, request);
  yield* data as object[];
}

/** What shows a record. @throws BrokerError NOT_FOUND if there is none */
function one(found: readonly object[], what: string): Output {
  if (found.length === 0) throw new BrokerError('NOT_FOUND', `there is no ${what}`);
  return { record: found[0] };
}

async function nodeOf(client: ManagementClient): Promise<string> {
  return (await client.get('/nodes'))[0].node;
}

/** A rule is for a client id, for a user name, or for all. */
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

const CLIENT_COLUMNS = [
  'clientid',
  'username',
  'ip_address',
  'port',
  'connected',
  'proto_ver',
  'subscriptions_cnt',
  'mqueue_len'
];
const ALARM_COLUMNS = ['id', 'desc.severity', 'desc.title', 'desc.summary', 'desc.timestamp', 'clear_at'];
const ACCESS = ['allow', 'deny'] as const;
const ACTIONS_OF_RULES = ['pub', 'sub', 'pubsub'] as const;

function choice<T extends string>(text: string, choices: readonly T[], field: string): T {
  const found = choices.find((candidate) => candidate === text);
  if (found === undefined) throw new InvalidInput('OPTION_INVALID', field, choices.join(', '), text);
  return found;
}

const CLIENTS: readonly Action[] = [
  {
    usage: 'clients list [PART]',
    about: 'list the clients; with PART, those whose client id contains it',
    columns: CLIENT_COLUMNS,
    run: ({ client }, [part]) => client.list('/clients', part === undefined ? {} : { query: { _like_clientid: part } })
  },
  {
    usage: 'clients show ID',
    about: 'show all that is known of a client',
    run: async ({ client }, [clientid]) =>
      one(await client.get('/clients/{clientid}', { params: { clientid } }), `client "${clientid}"`)
  },
  {
    usage: 'clients kick ID',
    about: 'disconnect a client and end its session',
    run: ({ client }, [clientid]) => client.delete('/clients/{clientid}', { params: { clientid } })
  },
  {
    usage: 'subs [ID]',
    about: 'list the subscriptions, or those of a client',
    columns: ['clientid', 'topic', 'qos'],
    run: ({ client }, [clientid]) =>
      client.list('/subscriptions', clientid === undefined ? {} : { query: { clientid } })
  },
  {
    usage: 'sub ID TOPIC',
    about: 'subscribe a client to a topic filter',
    run: ({ client, flags: { qos } }, [clientid, topic]) =>
      client.post('/mqtt/subscribe', { body: { clientid, topic, qos } })
  },
  {
    usage: 'unsub ID TOPIC',
    about: 'unsubscribe a client from a topic filter',
    run: ({ client }, [clientid, topic]) => client.post('/mqtt/unsubscribe', { body: { clientid, topic } })
  },
  {
    usage: 'pub TOPIC PAYLOAD',
    about: 'publish a message',
    run: ({ client, flags: { qos, retain } }, [topic, payload]) =>
      client.post('/mqtt/publish', { body: { topic, payload, qos, retain } })
  }
];

const ACCESS_CONTROL: readonly Action[] = [
  { usage: 'ban list', about: 'list the bans', run: ({ client }) => client.list('/banned') },
  {
    usage: 'ban add WHO',
    about: 'ban a client id, user name, or IP address or network (--as, --reason, --seconds)',
    run: async ({ client, flags: { as, reason, seconds } }, [who]) => {
      const until = seconds === undefined ? undefined : Math.floor(Date.now() / 1000) + seconds;
      await client.post('/banned', { body: { who, as, reason, until } });
      return undefined;
    }
  },
  {
    usage: 'ban remove WHO',
    about: 'remove a ban (--as)',
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
    about: 'allow or deny pub, sub or pubsub for a topic filter (--client, --user; without them, for all)',
    run: async ({ client, flags }, [access, action, topic]) => {
      const rule = {
        access: choice(access, ACCESS, 'ACCESS'),
        action: choice(action, ACTIONS_OF_RULES, 'ACTION'),
        topic
      };
      await client.post('/acl', { body: { ...subjectOf(flags), ...rule } });
      return undefined;
    }
  },
  {
    usage: 'acl remove TOPIC',
    about: 'remove a rule (--client, --user)',
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
    run: ({ client }) => client.get('/users')
  },
  {
    usage: 'users add NAME',
    about: 'add a user (--tags); the password is asked for, or read from standard input',
    run: async ({ client, flags: { tags }, password }, [username]) =>
      client.post('/users', { body: { username, password: await password(username), tags } })
  },
  {
    usage: 'users remove NAME',
    about: 'remove a user',
    run: ({ client }, [name]) => client.delete('/users/{name}', { params: { name } })
  },
  { usage: 'apps list', about: 'list the applications', run: ({ client }) => client.get('/apps') },
  {
    usage: 'apps add ID',
    about: 'add an application (--name), and print its secret, which cannot be read later',
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

const STATE: readonly Action[] = [
  {
    usage: 'alarms list',
    about: 'list the present alarms',
    columns: ALARM_COLUMNS.slice(0, -1),
    run: async ({ client }) => (await client.get('/alarms/present')).flatMap(({ alarms }) => alarms)
  },
  {
    usage: 'alarms history',
    about: 'list the alarms that have ended',
    columns: ALARM_COLUMNS,
    run: async ({ client }) => (await client.get('/alarms/history')).flatMap(({ alarms }) => alarms)
  },
  {
    usage: 'nodes',
    about: 'list the nodes',
    columns: ['node', 'node_status', 'version', 'uptime', 'connections', 'memory_used', 'load1'],
    run: ({ client }) => client.get('/nodes')
  },
  {
    usage: 'listeners',
    about: 'list the listeners',
    columns: ['protocol', 'listen_on', 'current_conns', 'max_conns'],
    run: async ({ client }) => (await client.get('/listeners')).flatMap(({ listeners }) => listeners)
  },
  {
    usage: 'stats',
    about: 'print how many clients, sessions, subscriptions and so on there are, and have been at most',
    run: async ({ client }) => ({ record: (await client.get('/stats'))[0].stats })
  },
  {
    usage: 'metrics',
    about: 'print the counters',
    run: async ({ client }) => ({ record: (await client.get('/metrics'))[0].metrics })
  },
  { usage: 'routes', about: 'list the topic filters with subscriptions', run: ({ client }) => client.list('/routes') },
  {
    usage: 'retained list [FILTER]',
    about: 'list the retained messages, or those that a topic filter matches',
    columns: ['topic', 'qos', 'payload_size', 'from_clientid'],
    run: ({ client }, [topic]) => client.list('/x/retained', topic === undefined ? {} : { query: { topic } })
  },
  {
    usage: 'retained show TOPIC',
    about: 'show a retained message',
    run: async ({ client }, [topic]) => ({
      record: await client.get('/x/retained/{topic}', { params: { topic } })
    })
  },
  {
    usage: 'retained remove TOPIC',
    about: 'delete a retained message',
    run: ({ client }, [topic]) => client.delete('/x/retained/{topic}', { params: { topic } })
  },
  {
    usage: 'drops',
    about: 'list the last dropped messages',
    columns: ['topic', 'qos', 'from_clientid', 'clientid', 'reason', 'count'],
    run: ({ client }) => client.list('/x/drops')
  },
  {
    usage: 'audit',
    about: 'list the last changes that were made over the management interface',
    columns: ['at', 'operation', 'caller.kind', 'caller.id', 'address', 'status', 'count'],
    run: ({ client }) => client.list('/x/audit')
  }
];

const SETTINGS: readonly Action[] = [
  {
    usage: 'config list',
    about: 'list the options that can be read at run time, with their source',
    columns: ['key', 'value', 'source', 'takes_effect'],
    run: ({ client }) => rows(client, '/x/options', { query: { _limit: 10_000 } })
  },
  {
    usage: 'config get KEY',
    about: 'show an option',
    run: async ({ client }, [key]) => {
      const { data } = await client.request('GET', '/x/options', { query: { _limit: 10_000 } });
      return one(
        (data as { readonly key: string }[]).filter((option) => option.key === key),
        `option "${key}"`
      );
    }
  },
  {
    usage: 'config set KEY VALUE',
    about: 'set an option; it stays set when the broker starts again',
    run: async ({ client }, [key, value]) => {
      await client.request('PUT', '/configs/{app}', { params: { app: 'emqx' }, body: { key, value } });
      return undefined;
    }
  },
  {
    usage: 'config reset KEY',
    about: 'remove what was set for an option at run time',
    run: async ({ client }, [key]) => {
      await client.request('DELETE', '/x/options/{key}', { params: { key } });
      return undefined;
    }
  },
  {
    usage: 'plugins list',
    about: 'list the features and sources that can be started and stopped',
    columns: ['name', 'active', 'type', 'description'],
    run: async function* ({ client }) {
      yield* rows(client, '/nodes/{node}/plugins', { params: { node: await nodeOf(client) } });
    }
  },
  ...(['load', 'unload', 'reload'] as const).map((verb) => ({
    usage: `plugins ${verb} NAME`,
    about: { load: 'start one', unload: 'stop one', reload: 'stop one and start it again' }[verb],
    run: async ({ client }: ActionContext, [plugin]: readonly string[]) => {
      const params = { node: await nodeOf(client), plugin };
      await client.request('PUT', `/nodes/{node}/plugins/{plugin}/${verb}`, { params });
      return undefined;
    }
  })),
  {
    usage: 'call METHOD PATH [JSON]',
    about: 'send any request, and print the data of the answer: call GET /clients/a%2Fb, call POST /x/backup',
    run: async ({ client }, [method, path, json]) => {
      const body = json === undefined ? {} : { body: parsed(json) };
      const mark = path.indexOf('?');
      const [target, query] = mark < 0 ? [path, ''] : [path.slice(0, mark), path.slice(mark + 1)];
      const request = { ...body, query: Object.fromEntries(new URLSearchParams(query)) };
      const verb = method.toUpperCase();
      const place = target.startsWith('/') ? target : `/${target}`;
      if (isStream(verb, place)) return { lines: client.lines(verb, place, request) };
      const { data } = await client.request(verb, place, request);
      if (data === undefined) return undefined;
      return Array.isArray(data) ? data.map(asRecord) : { record: asRecord(data) };
    }
  }
];

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : { value };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new InvalidInput('OPTION_INVALID', 'JSON', 'JSON', json, `the body is not JSON: ${(error as Error).message}`);
  }
}

/** The actions, in the order of the help. */
export const ACTIONS: readonly Action[] = [...CLIENTS, ...ACCESS_CONTROL, ...STATE, ...SETTINGS];

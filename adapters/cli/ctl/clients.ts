import { type Action, choice, one } from './action.ts';

const LONG_FORMS = new Map([
  ['pub', 'publish'],
  ['sub', 'subscribe']
]);
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
const SESSION_COLUMNS = [
  'clientid',
  'connected',
  'created_at',
  'expiry_interval',
  'subscriptions_cnt',
  'inflight',
  'awaiting_rel',
  'mqueue_len',
  'mqueue_dropped'
];

/** Clients, sessions and messages. */
export const CLIENTS: readonly Action[] = [
  {
    usage: 'clients list [PART]',
    about: 'list the clients; with PART, those whose client id contains it',
    columns: CLIENT_COLUMNS,
    run: ({ client }, [part]) => client.list('/clients', part === undefined ? {} : { query: { _like_clientid: part } })
  },
  {
    usage: 'clients show ID',
    about: 'show everything that is known about a client',
    run: async ({ client }, [clientid]) =>
      one(await client.get('/clients/{clientid}', { params: { clientid } }), `client "${clientid}"`)
  },
  {
    usage: 'clients kick ID',
    about: 'disconnect a client and end its session',
    run: ({ client }, [clientid]) => client.delete('/clients/{clientid}', { params: { clientid } })
  },
  {
    usage: 'sessions list [PART]',
    about: 'list the sessions and their queued messages; with PART, those whose client id contains it',
    columns: SESSION_COLUMNS,
    run: ({ client }, [part]) => client.list('/clients', part === undefined ? {} : { query: { _like_clientid: part } })
  },
  {
    usage: 'sessions show ID',
    about: 'show a session: its client, its subscriptions and what is in flight',
    run: async ({ client }, [clientid]) => ({
      record: await client.get('/x/sessions/{clientid}', { params: { clientid } })
    })
  },
  {
    usage: 'sessions queue ID',
    about: 'list the queued messages of a client',
    columns: ['at', 'topic', 'qos', 'retain', 'from_clientid', 'expires_at', 'payload_size', 'payload'],
    run: ({ client }, [clientid]) => client.list('/x/sessions/{clientid}/queue', { params: { clientid } })
  },
  {
    usage: 'sessions clear ID',
    about: 'drop the queued messages of a client',
    run: async ({ client }, [clientid]) => ({
      record: await client.delete('/x/sessions/{clientid}/queue', { params: { clientid } })
    })
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
    flags: ['qos'],
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
    flags: ['qos', 'retain'],
    run: ({ client, flags: { qos, retain } }, [topic, payload]) =>
      client.post('/mqtt/publish', { body: { topic, payload, qos, retain } })
  },
  {
    usage: 'retained list [FILTER]',
    about: 'list the retained messages, or those that a topic filter matches',
    columns: ['topic', 'qos', 'payload_size', 'at', 'expires_at', 'from_clientid'],
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
    usage: 'topics [PREFIX]',
    about: 'list one level of the topic tree: the names below PREFIX that are retained or subscribed to',
    columns: ['level', 'topic', 'retained', 'subscribed', 'retained_below', 'subscribed_below'],
    run: ({ client }, [prefix]) => client.list('/x/topics', prefix === undefined ? {} : { query: { prefix } })
  },
  {
    usage: 'routes',
    about: 'list the topic filters with subscriptions',
    columns: ['topic', 'node'],
    run: ({ client }) => client.list('/routes')
  },
  {
    usage: 'rights ACTION TOPIC',
    about: 'explain whether a client may publish (pub) or subscribe (sub) to a topic, and what decides',
    flags: ['client', 'user', 'address', 'ask'],
    run: async ({ client, flags: { client: clientid, user: username, address: ip_address, ask } }, [text, topic]) => {
      const action = choice(LONG_FORMS.get(text) ?? text, ['publish', 'subscribe'], 'ACTION');
      const query = { clientid, username, ip_address, action, topic, ...(ask ? { ask } : {}) };
      return { record: await client.get('/x/rights', { query }) };
    }
  }
];

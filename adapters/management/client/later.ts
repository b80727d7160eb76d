// Written by `UPDATE_OPENAPI=1 npm test -- openapi-files` from the operations. Do not edit.

export interface ActionOfRule {
  /** The id */
  id: string;
  /** The name of the action */
  name: string;
  /** The parameters as they were given, with ****** for secrets */
  params: { [name: string]: unknown };
  metrics: RuleActionMetrics[];
  /** The actions that run if this one has failed, in the same form */
  fallbacks: { [name: string]: unknown }[];
}

export interface AlarmDetails {
  /** notice, warning, error or critical */
  severity: string;
  /** A few words */
  title: string;
  /** A description of the condition and its remedy */
  summary: string;
  /** When the alarm was raised: local time, YYYY-MM-DD HH:mm:ss */
  timestamp: string;
}

export interface Application {
  /** The id */
  app_id: string;
  /** The name for people */
  name: string;
  /** A description */
  desc: string;
  /** True if the application may send requests */
  status: boolean;
  /** The time from which its requests are refused, in seconds since 1970; "undefined": never */
  expired: number | 'undefined';
}

export interface Ban {
  /** The client id, the user name, or the IP address or network */
  who: string;
  /** The kind of "who": clientid, username or peerhost; in the earlier revision client_id, username or ip_address */
  as: string;
  /** The author of the ban */
  by: string;
  /** The reason; "undefined" if there is none */
  reason: string;
  /** When the ban was created, in seconds since 1970 */
  at: number;
  /** When the ban ends, in seconds since 1970; "undefined": never */
  until: number | 'undefined';
}

export interface Broker {
  /** Name of the node; absent when the earlier revision looks one up */
  node?: string;
  /** Version of the broker */
  version: string;
  /** Time since the start: "1 hours, 0 minutes, 2 seconds" */
  uptime: string;
  /** Version of the runtime */
  otp_release: string;
  /** Status of the node */
  node_status: 'Running' | 'Stopped';
  /** Description of the broker */
  sysdescr: string;
  /** Local time: "2026-01-31 23:59:59" */
  datetime: string;
}

export interface CachedDecision {
  /** The action that was checked */
  access: 'publish' | 'subscribe';
  /** The topic name or topic filter */
  topic: string;
  /** The answer */
  result: 'allow' | 'deny';
  /** When it was given, in milliseconds since 1970 */
  updated_time: number;
}

export interface Client {
  /** Name of the node */
  node: string;
  /** The client id */
  clientid: string;
  /** The user name; "undefined" if there is none */
  username: string;
  /** True if the last CONNECT asked for a new session */
  clean_start: boolean;
  /** Packets of the client that wait for the store */
  mailbox_len: number;
  /** Bytes of messages and output in memory for the client */
  heap_size: number;
  /** Packets that this connection has received and sent */
  reductions: number;
  /** "MQTT"; in MQTT 3.1 "MQIsdp" */
  proto_name: string;
  /** The protocol version: 3 (MQTT 3.1), 4 (3.1.1) or 5 */
  proto_ver: number;
  /** The IP address of the client; "undefined" if the transport has none */
  ip_address: string;
  /** The port of the client; 0 if the transport has none */
  port: number;
  /** True if the client is a bridge */
  is_bridge: boolean;
  /** True if the client is connected */
  connected: boolean;
  /** When the client connected last: local time, YYYY-MM-DD HH:mm:ss */
  connected_at?: string;
  /** When the client disconnected; absent while it is connected: local time, YYYY-MM-DD HH:mm:ss */
  disconnected_at?: string;
  /** The zone, which sets the limits */
  zone: string;
  /** The mount point: the prefix of the topics of the client, which it does not see */
  mountpoint: string;
  /** The keep alive in seconds; 0: off */
  keepalive: number;
  /** Bytes received */
  recv_oct: number;
  /** Reads of the connection */
  recv_cnt: number;
  /** MQTT packets received */
  recv_pkt: number;
  /** PUBLISH packets received */
  recv_msg: number;
  /** Bytes sent */
  send_oct: number;
  /** Writes to the connection */
  send_cnt: number;
  /** MQTT packets sent */
  send_pkt: number;
  /** PUBLISH packets sent */
  send_msg: number;
  /** Seconds for which the session outlives its connection; 4294967295: it does not expire */
  expiry_interval: number;
  /** When the session was created: local time, YYYY-MM-DD HH:mm:ss */
  created_at: string;
  /** Number of subscriptions */
  subscriptions_cnt: number;
  /** Maximum number of subscriptions; 0: unlimited */
  max_subscriptions: number;
  /** Messages sent at QoS 1 or 2 whose acknowledgement is not complete */
  inflight: number;
  /** Maximum number of these; 0: unlimited */
  max_inflight: number;
  /** Messages in the queue */
  mqueue_len: number;
  /** Maximum number of messages in the queue; 0: unlimited */
  max_mqueue: number;
  /** Messages for this session that were dropped, for any reason */
  mqueue_dropped: number;
  /** QoS 2 messages of the client for which the PUBREL has not arrived */
  awaiting_rel: number;
  /** Maximum number of these; 0: unlimited */
  max_awaiting_rel: number;
}

export interface EntryResult {
  /** The client id of the entry */
  clientid?: string;
  /** The topic or topics of the entry */
  topic?: string;
  /** 0: success; otherwise the code of the fault of the entry */
  code: number;
  /** The description of the fault of the entry, for people */
  message?: string;
}

export interface GivenRuleAction {
  /** The name of the action */
  name: string;
  /** The parameters */
  params?: { [name: string]: unknown };
  /** Actions in the same form, which run in this order if the action has failed */
  fallbacks?: { [name: string]: unknown }[];
}

export interface ListedNode {
  /** Name of the node */
  name: string;
  /** Name of the node */
  node: string;
  /** Version of the broker */
  version: string;
  /** Time since the start: "1 hours, 0 minutes, 2 seconds" */
  uptime: string;
  /** Version of the runtime */
  otp_release: string;
  /** Status of the node */
  node_status: 'Running' | 'Stopped';
  /** Number of clients that are connected */
  connections: number;
  /** Average load of the machine over 1 minute */
  load1: string;
  /** Average load of the machine over 5 minutes */
  load5: string;
  /** Average load of the machine over 15 minutes */
  load15: string;
  /** Limit of file descriptors; 0: there is none, or it is unknown */
  max_fds: number;
  /** Maximum number of sessions; 0: unlimited */
  process_available: number;
  /** Number of sessions */
  process_used: number;
  /** Memory that the runtime has allocated: "512.00M" */
  memory_total: string;
  /** Memory in use: "256.00M" */
  memory_used: string;
}

export interface Listener {
  /** Transport: "mqtt:tcp", "mqtt:ssl", "mqtt:ws", "mqtt:wss", "mqtt:unix", "http:management", "https:management" */
  protocol: string;
  /** Address */
  listen_on: string;
  /** Number of accept loops */
  acceptors: number;
  /** Maximum number of connections; 0: unlimited */
  max_conns: number;
  /** Number of connections */
  current_conns: number;
  /** Number of connections that have ended, by reason; [] if there are none */
  shutdown_count: { [name: string]: number } | never[];
}

export interface LocalizedText {
  en: string;
  zh: string;
}

export interface Login {
  /** The user name */
  login: string;
  /** SHA-256 of salt and password, in hexadecimal */
  password: string;
  /** True if access control does not apply to the client */
  is_superuser: boolean;
}

export interface Node {
  /** Name of the node */
  name: string;
  /** Name of the node */
  node: string;
  /** Version of the broker */
  version: string;
  /** Time since the start: "1 hours, 0 minutes, 2 seconds" */
  uptime: string;
  /** Version of the runtime */
  otp_release: string;
  /** Status of the node */
  node_status: 'Running' | 'Stopped';
  /** Number of clients that are connected */
  connections: number;
  /** Average load of the machine over 1 minute */
  load1: string;
  /** Average load of the machine over 5 minutes */
  load5: string;
  /** Average load of the machine over 15 minutes */
  load15: string;
  /** Limit of file descriptors; 0: there is none, or it is unknown */
  max_fds: number;
  /** Maximum number of sessions; 0: unlimited */
  process_available: number;
  /** Number of sessions */
  process_used: number;
  /** Bytes that the runtime has allocated */
  memory_total: number;
  /** Bytes in use */
  memory_used: number;
}

export interface Operation {
  /** Name of the operation; some operations share one */
  name: string;
  /** Method of the request */
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path behind the prefix; parameters begin with a colon */
  path: string;
  /** The purpose of the operation */
  descr: string;
}

export interface PastAlarm {
  /** The condition, for example descriptors_short:tcp:1883 */
  id: string;
  desc: AlarmDetails;
  /** When it was cleared: local time, YYYY-MM-DD HH:mm:ss */
  clear_at: string;
}

export interface PresentAlarm {
  /** The condition, for example descriptors_short:tcp:1883 */
  id: string;
  desc: AlarmDetails;
}

export interface Resource {
  /** The id */
  id: string;
  /** The name of the type */
  type: string;
  /** The parameters as they were given, with ****** for secrets */
  config: { [name: string]: unknown };
  /** A description */
  description: string;
  /** When it was created, in milliseconds since 1970 */
  created_at: number;
  /** True if its target could be reached when that was tried last */
  is_alive: boolean;
  /** Number of queued entries */
  waiting: number;
  /** Why its target could not be reached, or why the last delivery has failed */
  last_error?: string;
}

export interface ResourceStatus {
  /** Name of the node */
  node: string;
  /** True if its target can be reached at present */
  is_alive: boolean;
}

export interface ResourceType {
  /** The name */
  name: string;
  /** The provider */
  provider: string;
  /** The parameters by name. Each has type, title and description, and may have required, default, enum and more */
  params: { [name: string]: unknown };
  title: LocalizedText;
  description: LocalizedText;
}

export interface ResourceWithStatus {
  /** The id */
  id: string;
  /** The name of the type */
  type: string;
  /** The parameters as they were given, with ****** for secrets */
  config: { [name: string]: unknown };
  /** A description */
  description: string;
  /** When it was created, in milliseconds since 1970 */
  created_at: number;
  /** True if its target could be reached when that was tried last */
  is_alive: boolean;
  /** Number of queued entries */
  waiting: number;
  /** Why its target could not be reached, or why the last delivery has failed */
  last_error?: string;
  status: ResourceStatus[];
}

export interface Route {
  /** Topic filter, without a share prefix */
  topic: string;
  /** Name of the node that has the subscribers */
  node: string;
}

export interface Rule {
  /** The id */
  id: string;
  /** The statement */
  rawsql: string;
  /** The topics of FROM, in their order */
  for: string[];
  /** True if it is enabled */
  enabled: boolean;
  /** continue: the later actions run even if one has failed; stop: they do not */
  on_action_failed: 'continue' | 'stop';
  /** A description */
  description: string;
  /** When it was created, in milliseconds since 1970 */
  created_at: number;
  /** idle: it is disabled; connected: events reach it; disconnected: it does not work, see "reason" */
  state: 'idle' | 'connected' | 'disconnected';
  /** Why it does not work */
  reason?: string;
  metrics: RuleMetrics[];
  actions: ActionOfRule[];
}

export interface RuleAction {
  /** The name */
  name: string;
  /** The provider */
  app: string;
  /** The events that it is meant for; $any: all */
  for: string;
  /** The types of resources that it can use */
  types: string[];
  /** The purpose */
  category: 'debug' | 'data_forward' | 'other';
  /** The parameters by name. Each has type, title and description, and may have required, default, enum and more */
  params: { [name: string]: unknown };
  title: LocalizedText;
  description: LocalizedText;
}

export interface RuleActionMetrics {
  /** Name of the node */
  node: string;
  /** Runs that have succeeded */
  success: number;
  /** Runs that have failed */
  failed: number;
  /** Runs that have begun */
  taken: number;
}

export interface RuleEvent {
  /** The topic of the event after FROM; $events/message_publish stands for topics of messages */
  event: string;
  title: {
    en: string;
    zh: string;
  };
  description: {
    en: string;
    zh: string;
  };
  /** Columns, with their values in a test */
  test_columns: { [name: string]: unknown };
  /** The columns */
  columns: string[];
  /** A statement */
  sql_example: string;
}

export interface RuleMetrics {
  /** Name of the node */
  node: string;
  /** Events of the topics of the rule */
  matched: number;
  /** Matched events per second, in the last 10 seconds */
  speed: number;
  /** The highest of these values */
  speed_max: number;
  /** The mean in the last 5 minutes */
  speed_last5m: number;
  /** Events with an output */
  passed: number;
  /** Events without an output: exception and no_result */
  failed: number;
  /** Events for which the evaluation has failed */
  exception: number;
  /** Events that WHERE has excluded */
  no_result: number;
}

export interface Subscription {
  /** Name of the node */
  node: string;
  /** The client id */
  clientid: string;
  /** The topic filter */
  topic: string;
  /** The QoS */
  qos: number;
}

export interface User {
  /** The name of the user */
  username: string;
  /** Any text; "administrator" makes the user one, others may only read */
  tags: string;
}

/** Broker management, revision "later": its operations, and what they get and give. */

export interface LaterOperations {
  /** List all operations */

  'GET /': {
    data: Operation[];
  };

  /** List available clientid in the cluster */

  'GET /auth_clientid': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: {
      /** The client id */
      clientid: string;
    }[];
    isPaged: true;
  };

  /** Add clientid in the cluster */

  'POST /auth_clientid': {
    body:
      | {
          /** The client id */
          clientid: string;
          /** The password, in clear */
          password: string;
        }
      | {
          /** The client id */
          clientid: string;
          /** The password, in clear */
          password: string;
        }[];
    data: { [name: string]: string } | undefined;
  };

  /** Lookup clientid in the cluster */

  'GET /auth_clientid/{clientid}': {
    params: {
      clientid: string;
    };
    data: {
      /** The client id */
      clientid: string;
      /** SHA-256 of salt and password, in hexadecimal */
      password: string;
    };
  };

  /** Update clientid in the cluster */

  'PUT /auth_clientid/{clientid}': {
    params: {
      clientid: string;
    };
    body: {
      /** The password, in clear */
      password: string;
    };
    data: undefined;
  };

  /** Delete clientid in the cluster */

  'DELETE /auth_clientid/{clientid}': {
    params: {
      clientid: string;
    };
    data: undefined;
  };

  /** List available username in the cluster */

  'GET /auth_username': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: {
      /** The user name */
      username: string;
    }[];
    isPaged: true;
  };

  /** Add username in the cluster */

  'POST /auth_username': {
    body:
      | {
          /** The user name */
          username: string;
          /** The password, in clear */
          password: string;
        }
      | {
          /** The user name */
          username: string;
          /** The password, in clear */
          password: string;
        }[];
    data: { [name: string]: string } | undefined;
  };

  /** Lookup username in the cluster */

  'GET /auth_username/{username}': {
    params: {
      username: string;
    };
    data: {
      /** The user name */
      username: string;
      /** The user name again */
      clientid: string;
      /** SHA-256 of salt and password, in hexadecimal */
      password: string;
    };
  };

  /** Update username in the cluster */

  'PUT /auth_username/{username}': {
    params: {
      username: string;
    };
    body: {
      /** The password, in clear */
      password: string;
    };
    data: undefined;
  };

  /** Delete username in the cluster */

  'DELETE /auth_username/{username}': {
    params: {
      username: string;
    };
    data: undefined;
  };

  /** List available mnesia in the cluster */

  'GET /auth_user': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Login[];
    isPaged: true;
  };

  /** Add mnesia in the cluster */

  'POST /auth_user': {
    body:
      | {
          /** The user name */
          login: string;
          /** The password, in clear */
          password: string;
          /** True if access control does not apply to the client */
          is_superuser: boolean;
        }
      | {
          /** The user name */
          login: string;
          /** The password, in clear */
          password: string;
          /** True if access control does not apply to the client */
          is_superuser: boolean;
        }[];
    data: { [name: string]: string };
  };

  /** Lookup mnesia in the cluster */

  'GET /auth_user/{login}': {
    params: {
      login: string;
    };
    data: Login;
  };

  /** Update mnesia in the cluster */

  'PUT /auth_user/{login}': {
    params: {
      login: string;
    };
    body: {
      /** The password, in clear */
      password: string;
      /** True if access control does not apply to the client */
      is_superuser: boolean;
    };
    data: undefined;
  };

  /** Delete mnesia in the cluster */

  'DELETE /auth_user/{login}': {
    params: {
      login: string;
    };
    data: undefined;
  };

  /** List available mnesia in the cluster */

  'GET /acl/clientid': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: {
      /** The client id */
      clientid: string;
      /** The topic filter */
      topic: string;
      /** pub, sub, or both: pubsub or subpub, as it was written */
      action: string;
      /** allow or deny */
      access: string;
      /** ok, or the fault: `{error,topic}` */
      result: string;
    }[];
    isPaged: true;
  };

  /** List available mnesia in the cluster */

  'GET /acl/username': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: {
      /** The user name */
      username: string;
      /** The topic filter */
      topic: string;
      /** pub, sub, or both: pubsub or subpub, as it was written */
      action: string;
      /** allow or deny */
      access: string;
      /** ok, or the fault: `{error,topic}` */
      result: string;
    }[];
    isPaged: true;
  };

  /** List available mnesia in the cluster */

  'GET /acl/$all': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: {
      /** $all */
      all: string;
      /** The topic filter */
      topic: string;
      /** pub, sub, or both: pubsub or subpub, as it was written */
      action: string;
      /** allow or deny */
      access: string;
      /** ok, or the fault: `{error,topic}` */
      result: string;
    }[];
    isPaged: true;
  };

  /** Lookup mnesia in the cluster */

  'GET /acl/clientid/{clientid}': {
    params: {
      clientid: string;
    };
    data: {
      /** The client id */
      clientid: string;
      /** The topic filter */
      topic: string;
      /** pub, sub, or both: pubsub or subpub, as it was written */
      action: string;
      /** allow or deny */
      access: string;
    }[];
  };

  /** Lookup mnesia in the cluster */

  'GET /acl/username/{username}': {
    params: {
      username: string;
    };
    data: {
      /** The user name */
      username: string;
      /** The topic filter */
      topic: string;
      /** pub, sub, or both: pubsub or subpub, as it was written */
      action: string;
      /** allow or deny */
      access: string;
    }[];
  };

  /** Add mnesia in the cluster */

  'POST /acl': {
    body:
      | {
          /** The client id to which the rule applies */
          clientid?: string;
          /** The user name to which the rule applies; without it and a client id, it applies to all */
          username?: string;
          /** The rule applies to all */
          all?: '$all';
          /** The topic filter */
          topic: string;
          /** Publish, subscribe, or both: pubsub and subpub are the same */
          action: 'pub' | 'sub' | 'pubsub' | 'subpub';
          /** allow or deny: whether the client may do it */
          access: 'allow' | 'deny';
        }
      | {
          /** The client id to which the rule applies */
          clientid?: string;
          /** The user name to which the rule applies; without it and a client id, it applies to all */
          username?: string;
          /** The rule applies to all */
          all?: '$all';
          /** The topic filter */
          topic: string;
          /** Publish, subscribe, or both: pubsub and subpub are the same */
          action: 'pub' | 'sub' | 'pubsub' | 'subpub';
          /** allow or deny: whether the client may do it */
          access: 'allow' | 'deny';
        }[];
    data:
      | {
          /** ok, or the fault: `{error,topic}` */
          result: string;
        }
      | {
          /** ok, or the fault: `{error,topic}` */
          result: string;
        }[];
  };

  /** Delete mnesia in the cluster */

  'DELETE /acl/clientid/{clientid}/topic/{topic}': {
    params: {
      clientid: string;
      topic: string;
    };
    data: undefined;
  };

  /** Delete mnesia in the cluster */

  'DELETE /acl/username/{username}/topic/{topic}': {
    params: {
      username: string;
      topic: string;
    };
    data: undefined;
  };

  /** Delete mnesia in the cluster */

  'DELETE /acl/$all/topic/{topic}': {
    params: {
      topic: string;
    };
    data: undefined;
  };

  /** Delete mnesia in the cluster */

  'DELETE /acl/all/$all/topic/{topic}': {
    params: {
      topic: string;
    };
    data: undefined;
  };

  /** Authenticate an user */

  'POST /auth': {
    body: {
      /** The name of the user */
      username: string;
      /** The password */
      password: string;
    };
    data: undefined;
  };

  /** List users */

  'GET /users': {
    data: User[];
  };

  /** Create an user */

  'POST /users': {
    body: {
      /** The name of the user */
      username: string;
      /** The password */
      password: string;
      /** Any text; "administrator" makes the user one, others may only read */
      tags?: string;
    };
    data: undefined;
  };

  /** Update an user */

  'PUT /users/{name}': {
    params: {
      name: string;
    };
    body: {
      /** Any text; "administrator" makes the user one, others may only read */
      tags: string;
    };
    data: undefined;
  };

  /** Delete an user */

  'DELETE /users/{name}': {
    params: {
      name: string;
    };
    data: undefined;
  };

  /** Change password for an user */

  'PUT /change_pwd/{username}': {
    params: {
      username: string;
    };
    body: {
      /** The password until now */
      old_pwd: string;
      /** The password from now on */
      new_pwd: string;
    };
    data: undefined;
  };

  /** List all alarms */

  'GET /alarms/present': {
    data: {
      /** Name of the node */
      node: string;
      alarms: PresentAlarm[];
    }[];
  };

  /** List alarms of a node */

  'GET /alarms/present/{node}': {
    params: {
      node: string;
    };
    data: PresentAlarm[];
  };

  /** List all alarm history */

  'GET /alarms/history': {
    data: {
      /** Name of the node */
      node: string;
      alarms: PastAlarm[];
    }[];
  };

  /** List alarm history of a node */

  'GET /alarms/history/{node}': {
    params: {
      node: string;
    };
    data: PastAlarm[];
  };

  /** List Applications */

  'GET /apps': {
    data: Application[];
  };

  /** Add Application */

  'POST /apps': {
    body: {
      /** The id, with which it sends requests */
      app_id: string;
      /** The secret; without it, a random one is made */
      secret?: string;
      /** The name for people */
      name?: string;
      /** A description */
      desc?: string;
      /** True if the application may send requests */
      status?: boolean;
      /** The time from which its requests are refused, in seconds or milliseconds since 1970; null or "undefined": never */
      expired?: number | null | 'undefined';
    };
    data: {
      /** The secret, which cannot be read later */
      secret: string;
    };
  };

  /** Lookup Application */

  'GET /apps/{appid}': {
    params: {
      appid: string;
    };
    data: Application;
  };

  /** Update Application */

  'PUT /apps/{appid}': {
    params: {
      appid: string;
    };
    body: {
      /** The new secret; the previous one is refused from then on */
      secret?: string;
      /** The name for people */
      name?: string;
      /** A description */
      desc?: string;
      /** True if the application may send requests */
      status?: boolean;
      /** The time from which its requests are refused, in seconds or milliseconds since 1970; null or "undefined": never */
      expired?: number | null | 'undefined';
    };
    data: undefined;
  };

  /** Delete Application */

  'DELETE /apps/{appid}': {
    params: {
      appid: string;
    };
    data: undefined;
  };

  /** List banned */

  'GET /banned': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Ban[];
    isPaged: true;
  };

  /** Create banned */

  'POST /banned': {
    body: {
      /** The client id, the user name, or the IP address or network */
      who: string;
      /** The kind of "who": clientid, username or peerhost; in the earlier revision client_id, username or ip_address */
      as: string;
      /** The author of the ban */
      by?: string;
      /** The reason */
      reason?: string;
      /** More about the reason */
      desc?: string;
      /** The time at which the ban was created, in seconds or milliseconds since 1970. Default: now */
      at?: number;
      /** The time at which the ban ends, in seconds or milliseconds since 1970; "undefined": it does not end. Default: in five minutes; in the earlier revision: it does not end */
      until?: number | 'undefined';
    };
    data: {
      /** The client id, the user name, or the IP address or network */
      who: string;
      /** The kind of "who": clientid, username or peerhost; in the earlier revision client_id, username or ip_address */
      as: string;
      /** The author of the ban */
      by?: string;
      /** The reason */
      reason?: string;
      /** More about the reason */
      desc?: string;
      /** The time at which the ban was created, in seconds or milliseconds since 1970. Default: now */
      at?: number;
      /** The time at which the ban ends, in seconds or milliseconds since 1970; "undefined": it does not end. Default: in five minutes; in the earlier revision: it does not end */
      until?: number | 'undefined';
    };
  };

  /** Delete banned */

  'DELETE /banned/{who}': {
    params: {
      who: string;
    };
    query?: {
      /** The kind of "who": clientid, username or peerhost; in the earlier revision client_id, username or ip_address */
      as?: string;
    };
    body?: {
      /** The kind of "who": clientid, username or peerhost; in the earlier revision client_id, username or ip_address */
      as?: string;
    };
    data: undefined;
  };

  /** Delete banned */

  'DELETE /banned/{as}/{who}': {
    params: {
      as: string;
      who: string;
    };
    data: undefined;
  };

  /** A list of brokers in the cluster */

  'GET /brokers': {
    data: Broker[];
  };

  /** Get broker info of a node */

  'GET /brokers/{node}': {
    params: {
      node: string;
    };
    data: Broker;
  };

  /** Get all configs */

  'GET /configs': {
    data: {
      /** Name of the node */
      node: string;
      config: {
        /** Documented name of the option: "zone.external.max_inflight" */
        key: string;
        /** Present value, as it can be sent back; "": none */
        value: string | number | boolean;
        /** The same as datatype, spelled as the original products spell it */
        datatpye: string;
        /** Kind of the value: "integer", "duration", "size", ... */
        datatype: string;
        /** Application that the option belongs to */
        app: string;
      }[];
    }[];
  };

  /** Get all configs of a node */

  'GET /nodes/{node}/configs': {
    params: {
      node: string;
    };
    data: {
      /** Documented name of the option: "zone.external.max_inflight" */
      key: string;
      /** Present value, as it can be sent back; "": none */
      value: string | number | boolean;
      /** The same as datatype, spelled as the original products spell it */
      datatpye: string;
      /** Kind of the value: "integer", "duration", "size", ... */
      datatype: string;
      /** Application that the option belongs to */
      app: string;
    }[];
  };

  /** Update config of an application in the cluster */

  'PUT /configs/{app}': {
    params: {
      app: string;
    };
    body: {
      /** Name of the option in any accepted spelling */
      key: string;
      /** The new value: "64", 64, "90s", "1MB", true; "": none */
      value: unknown;
    };
    data: undefined;
  };

  /** Update config of an application on a node */

  'PUT /nodes/{node}/configs/{app}': {
    params: {
      node: string;
      app: string;
    };
    body: {
      /** Name of the option in any accepted spelling */
      key: string;
      /** The new value: "64", 64, "90s", "1MB", true; "": none */
      value: unknown;
    };
    data: undefined;
  };

  /** Get configurations of a plugin on the node */

  'GET /nodes/{node}/plugin_configs/{plugin}': {
    params: {
      node: string;
      plugin: string;
    };
    data: {
      /** Documented name of the option */
      key: string;
      /** Present value; "": none */
      value: string;
      /** The purpose of the option */
      desc: string;
      /** True if a value was given: as an option, or at run time */
      required: boolean;
    }[];
  };

  /** Update configurations of a plugin on the node */

  'PUT /nodes/{node}/plugin_configs/{plugin}': {
    params: {
      node: string;
      plugin: string;
    };
    body:
      | { [name: string]: string | number | boolean }
      | {
          /** Documented name of the option */
          key: string;
          value: string | number | boolean;
          /** The purpose of the option */
          desc?: string;
          /** True if a value was given: as an option, or at run time */
          required?: boolean;
        }[];
    data: undefined;
  };

  /** A list of clients on current node */

  'GET /clients': {
    query?: {
      /** The client id */
      clientid?: string;
      /** The user name */
      username?: string;
      /** The zone */
      zone?: string;
      /** The IP address of the client */
      ip_address?: string;
      /** The state of the connection */
      conn_state?: 'connected' | 'idle' | 'disconnected';
      /** True if the last CONNECT asked for a new session */
      clean_start?: boolean;
      /** The protocol: MQTT, or MQIsdp (MQTT 3.1). There are no clients of the others */
      proto_name?: 'MQTT' | 'MQIsdp' | 'CoAP' | 'LwM2M' | 'MQTT-SN';
      /** The protocol version: 3, 4 or 5 */
      proto_ver?: number;
      /** A part of the client id */
      _like_clientid?: string;
      /** A part of the user name */
      _like_username?: string;
      /** The session was created at this time or later, in seconds or milliseconds since 1970 */
      _gte_created_at?: number;
      /** The session was created at this time or earlier, in seconds or milliseconds since 1970 */
      _lte_created_at?: number;
      /** The client connected at this time or later, in seconds or milliseconds since 1970 */
      _gte_connected_at?: number;
      /** The client connected at this time or earlier, in seconds or milliseconds since 1970 */
      _lte_connected_at?: number;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Client[];
    isPaged: true;
  };

  /** A list of clients on specified node */

  'GET /nodes/{node}/clients': {
    params: {
      node: string;
    };
    query?: {
      /** The client id */
      clientid?: string;
      /** The user name */
      username?: string;
      /** The zone */
      zone?: string;
      /** The IP address of the client */
      ip_address?: string;
      /** The state of the connection */
      conn_state?: 'connected' | 'idle' | 'disconnected';
      /** True if the last CONNECT asked for a new session */
      clean_start?: boolean;
      /** The protocol: MQTT, or MQIsdp (MQTT 3.1). There are no clients of the others */
      proto_name?: 'MQTT' | 'MQIsdp' | 'CoAP' | 'LwM2M' | 'MQTT-SN';
      /** The protocol version: 3, 4 or 5 */
      proto_ver?: number;
      /** A part of the client id */
      _like_clientid?: string;
      /** A part of the user name */
      _like_username?: string;
      /** The session was created at this time or later, in seconds or milliseconds since 1970 */
      _gte_created_at?: number;
      /** The session was created at this time or earlier, in seconds or milliseconds since 1970 */
      _lte_created_at?: number;
      /** The client connected at this time or later, in seconds or milliseconds since 1970 */
      _gte_connected_at?: number;
      /** The client connected at this time or earlier, in seconds or milliseconds since 1970 */
      _lte_connected_at?: number;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Client[];
    isPaged: true;
  };

  /** Lookup a client in the cluster */

  'GET /clients/{clientid}': {
    params: {
      clientid: string;
    };
    data: Client[];
  };

  /** Kick out the client in the cluster */

  'DELETE /clients/{clientid}': {
    params: {
      clientid: string;
    };
    data: undefined;
  };

  /** Lookup a client on the node */

  'GET /nodes/{node}/clients/{clientid}': {
    params: {
      node: string;
      clientid: string;
    };
    data: Client[];
  };

  /** Kick out the client on the node */

  'DELETE /nodes/{node}/clients/{clientid}': {
    params: {
      node: string;
      clientid: string;
    };
    data: undefined;
  };

  /** Lookup a client via username in the cluster */

  'GET /clients/username/{username}': {
    params: {
      username: string;
    };
    data: Client[];
  };

  /** Lookup a client via username on the node */

  'GET /nodes/{node}/clients/username/{username}': {
    params: {
      node: string;
      username: string;
    };
    data: Client[];
  };

  /** List the ACL cache of a specified client in the cluster */

  'GET /clients/{clientid}/acl_cache': {
    params: {
      clientid: string;
    };
    data: CachedDecision[];
  };

  /** Clear the ACL cache of a specified client in the cluster */

  'DELETE /clients/{clientid}/acl_cache': {
    params: {
      clientid: string;
    };
    data: undefined;
  };

  /** A list of listeners in the cluster */

  'GET /listeners': {
    data: {
      /** Name of the node */
      node: string;
      listeners: Listener[];
    }[];
  };

  /** A list of listeners on the node */

  'GET /nodes/{node}/listeners': {
    params: {
      node: string;
    };
    data: Listener[];
  };

  /** A list of metrics of all nodes in the cluster */

  'GET /metrics': {
    data: {
      /** Name of the node */
      node: string;
      /** Counters by name */
      metrics: { [name: string]: number };
    }[];
  };

  /** A list of metrics of a node */

  'GET /nodes/{node}/metrics': {
    params: {
      node: string;
    };
    data: { [name: string]: number };
  };

  /** A list of nodes in the cluster */

  'GET /nodes': {
    data: ListedNode[];
  };

  /** Lookup a node in the cluster */

  'GET /nodes/{node}': {
    params: {
      node: string;
    };
    data: Node;
  };

  /** List all plugins in the cluster */

  'GET /plugins': {
    data: {
      /** Name of the node */
      node: string;
      plugins: {
        /** Name of the feature or source, or "management" */
        name: string;
        /** Version of the broker */
        version: string;
        /** The purpose of the plugin */
        description: string;
        /** True if it is loaded */
        active: boolean;
        /** "auth": it authenticates or authorizes clients */
        type: 'auth' | 'bridge' | 'feature';
      }[];
    }[];
  };

  /** List all plugins on a node */

  'GET /nodes/{node}/plugins': {
    params: {
      node: string;
    };
    data: {
      /** Name of the feature or source, or "management" */
      name: string;
      /** Version of the broker */
      version: string;
      /** The purpose of the plugin */
      description: string;
      /** True if it is loaded */
      active: boolean;
      /** "auth": it authenticates or authorizes clients */
      type: 'auth' | 'bridge' | 'feature';
    }[];
  };

  /** Load a plugin */

  'PUT /nodes/{node}/plugins/{plugin}/load': {
    params: {
      node: string;
      plugin: string;
    };
    data: string[] | undefined;
  };

  /** Unload a plugin */

  'PUT /nodes/{node}/plugins/{plugin}/unload': {
    params: {
      node: string;
      plugin: string;
    };
    data: undefined;
  };

  /** Reload a plugin */

  'PUT /nodes/{node}/plugins/{plugin}/reload': {
    params: {
      node: string;
      plugin: string;
    };
    data: undefined;
  };

  /** Unload a plugin in the cluster */

  'PUT /plugins/{plugin}/unload': {
    params: {
      plugin: string;
    };
    data: undefined;
  };

  /** Reload a plugin in the cluster */

  'PUT /plugins/{plugin}/reload': {
    params: {
      plugin: string;
    };
    data: undefined;
  };

  /** Subscribe a topic */

  'POST /mqtt/subscribe': {
    body: {
      /** The topic, or several, separated by commas */
      topic?: string;
      /** Several topics, separated by commas, in addition to "topic" */
      topics?: string;
      /** The client id of the subscriber */
      clientid: string;
      /** The QoS */
      qos?: number;
    };
    data: undefined;
  };

  /** Publish a MQTT message */

  'POST /mqtt/publish': {
    body: {
      /** The topic, or several, separated by commas */
      topic?: string;
      /** Several topics, separated by commas, in addition to "topic" */
      topics?: string;
      /** The client id of the publisher, which events name. It is not checked */
      clientid?: string;
      /** The payload; empty with "retain": deletes the retained message of the topic */
      payload: string;
      /** base64: the payload is Base64 */
      encoding?: 'plain' | 'base64';
      /** The QoS */
      qos?: number;
      /** The retain flag: keep the message for the topic, in place of the previous one; an empty payload deletes it */
      retain?: boolean;
    };
    data: undefined;
  };

  /** Unsubscribe a topic */

  'POST /mqtt/unsubscribe': {
    body: {
      /** The topic, or several, separated by commas */
      topic?: string;
      /** The client id of the subscriber */
      clientid: string;
    };
    data: undefined;
  };

  /** Batch subscribes topics */

  'POST /mqtt/subscribe_batch': {
    body: {
      /** The topic, or several, separated by commas */
      topic?: string;
      /** Several topics, separated by commas, in addition to "topic" */
      topics?: string;
      /** The client id of the subscriber */
      clientid: string;
      /** The QoS */
      qos?: number;
    }[];
    data: EntryResult[];
  };

  /** Batch publish MQTT messages */

  'POST /mqtt/publish_batch': {
    body: {
      /** The topic, or several, separated by commas */
      topic?: string;
      /** Several topics, separated by commas, in addition to "topic" */
      topics?: string;
      /** The client id of the publisher, which events name. It is not checked */
      clientid?: string;
      /** The payload; empty with "retain": deletes the retained message of the topic */
      payload: string;
      /** base64: the payload is Base64 */
      encoding?: 'plain' | 'base64';
      /** The QoS */
      qos?: number;
      /** The retain flag: keep the message for the topic, in place of the previous one; an empty payload deletes it */
      retain?: boolean;
    }[];
    data: EntryResult[];
  };

  /** Batch unsubscribes topics */

  'POST /mqtt/unsubscribe_batch': {
    body: {
      /** The topic, or several, separated by commas */
      topic?: string;
      /** The client id of the subscriber */
      clientid: string;
    }[];
    data: EntryResult[];
  };

  /** List routes */

  'GET /routes': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Route[];
    isPaged: true;
  };

  /** Lookup routes to a topic */

  'GET /routes/{topic}': {
    params: {
      topic: string;
    };
    data: Route[];
  };

  /** A list of all rules */

  'GET /rules': {
    query?: {
      /** Rules that are enabled, or that are not */
      enabled?: boolean;
      /** Rules with this topic after FROM */
      for?: string;
      /** Rules whose id contains this */
      _like_id?: string;
      /** Rules with a topic after FROM that contains this */
      _like_for?: string;
      /** Rules with a topic after FROM that this topic filter matches */
      _match_for?: string;
      /** Rules whose description contains this */
      _like_description?: string;
      /** True if the list has pages; default: if "_page" or "_limit" is given */
      enable_paging?: boolean;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Rule[];
    isPaged: true;
  };

  /** Create a rule */

  'POST /rules': {
    query?: {
      /** Evaluate the statement for an event, and make no rule */
      test?: boolean;
      /** As in the body */
      rawsql?: string;
    };
    body: {
      /** The id: 1 to 64 letters, digits, ":", "_", "-" and ".", except "." and ".."; default: "rule:" and 8 hexadecimal digits */
      id?: string;
      /** The statement */
      rawsql: string;
      /** The actions for each output; required except for a test */
      actions?: GivenRuleAction[];
      /** A description */
      description?: string;
      /** True if events reach the rule */
      enabled?: boolean;
      /** continue: the later actions run even if one has failed; stop: they do not */
      on_action_failed?: 'continue' | 'stop';
      /** As in the query */
      test?: boolean | 'true' | 'false';
      /** For a test: columns of the event; others have the defaults of /rule_events */
      ctx?: { [name: string]: unknown };
    };
    data: Rule | { [name: string]: unknown } | unknown[];
  };

  /** Show a rule */

  'GET /rules/{id}': {
    params: {
      id: string;
    };
    data: Rule;
  };

  /** Update a rule */

  'PUT /rules/{id}': {
    params: {
      id: string;
    };
    body: {
      /** The statement */
      rawsql?: string;
      /** All actions; if they are other ones, their metrics begin with 0 */
      actions?: GivenRuleAction[];
      /** A description */
      description?: string;
      /** True if events reach the rule */
      enabled?: boolean;
      /** continue: the later actions run even if one has failed; stop: they do not */
      on_action_failed?: 'continue' | 'stop';
    };
    data: Rule;
  };

  /** Delete a rule */

  'DELETE /rules/{id}': {
    params: {
      id: string;
    };
    data: undefined;
  };

  /** Set the metrics of a rule and its actions to 0 */

  'PUT /rules/{id}/reset_metrics': {
    params: {
      id: string;
    };
    data: undefined;
  };

  /** A list of all actions */

  'GET /actions': {
    data: RuleAction[];
  };

  /** Show an action */

  'GET /actions/{name}': {
    params: {
      name: string;
    };
    data: RuleAction;
  };

  /** List all resource types */

  'GET /resource_types': {
    data: ResourceType[];
  };

  /** Show a resource type */

  'GET /resource_types/{name}': {
    params: {
      name: string;
    };
    data: ResourceType;
  };

  /** List all resources of a resource type */

  'GET /resource_types/{type}/resources': {
    params: {
      type: string;
    };
    data: Resource[];
  };

  /** List all actions of a resource type */

  'GET /resource_types/{type}/actions': {
    params: {
      type: string;
    };
    data: RuleAction[];
  };

  /** List all events with detailed info */

  'GET /rule_events': {
    data: RuleEvent[];
  };

  /** A list of all resources */

  'GET /resources': {
    data: Resource[];
  };

  /** Create a resource */

  'POST /resources': {
    query?: {
      /** Find out whether the target can be reached, and make no resource */
      test?: boolean;
    };
    body: {
      /** The id: 1 to 64 letters, digits, ":", "_", "-" and ".", except "." and ".."; default: "resource:" and 8 hexadecimal digits */
      id?: string;
      /** The name of the type */
      type: string;
      /** The parameters, as defined by the type */
      config?: { [name: string]: unknown };
      /** A description */
      description?: string;
      /** As in the query */
      test?: boolean | 'true' | 'false';
    };
    data: Resource | undefined;
  };

  /** Show a resource, and whether its target can be reached */

  'GET /resources/{id}': {
    params: {
      id: string;
    };
    data: ResourceWithStatus;
  };

  /** Start a resource: connect to its target now */

  'POST /resources/{id}': {
    params: {
      id: string;
    };
    data: undefined;
  };

  /** Update a resource */

  'PUT /resources/{id}': {
    params: {
      id: string;
    };
    body: {
      /** All parameters; ****** for a secret keeps the present one */
      config?: { [name: string]: unknown };
      /** A description */
      description?: string;
    };
    data: undefined;
  };

  /** Delete a resource */

  'DELETE /resources/{id}': {
    params: {
      id: string;
    };
    data: undefined;
  };

  /** Find out whether the target of a resource can be reached at present */

  'GET /resource_status/{id}': {
    params: {
      id: string;
    };
    data: {
      /** True if it can be reached */
      is_alive: boolean;
    };
  };

  /** A list of stats of all nodes in the cluster */

  'GET /stats': {
    data: {
      /** Name of the node */
      node: string;
      /** Present values ("connections.count") and highest values ("connections.max") by name */
      stats: { [name: string]: number };
    }[];
  };

  /** A list of stats of a node */

  'GET /nodes/{node}/stats': {
    params: {
      node: string;
    };
    data: { [name: string]: number };
  };

  /** A list of subscriptions in the cluster */

  'GET /subscriptions': {
    query?: {
      /** The client id */
      clientid?: string;
      /** The topic filter of the subscription, without a share prefix */
      topic?: string;
      /** The QoS */
      qos?: number;
      /** The name of the share group; "$queue" for topics that begin with "$queue/" */
      share?: string;
      /** A topic filter that covers the topic filter of the subscription */
      _match_topic?: string;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Subscription[];
    isPaged: true;
  };

  /** A list of subscriptions on a node */

  'GET /nodes/{node}/subscriptions': {
    params: {
      node: string;
    };
    query?: {
      /** The client id */
      clientid?: string;
      /** The topic filter of the subscription, without a share prefix */
      topic?: string;
      /** The QoS */
      qos?: number;
      /** The name of the share group; "$queue" for topics that begin with "$queue/" */
      share?: string;
      /** A topic filter that covers the topic filter of the subscription */
      _match_topic?: string;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Subscription[];
    isPaged: true;
  };

  /** A list of subscriptions of a client */

  'GET /subscriptions/{clientid}': {
    params: {
      clientid: string;
    };
    query?: {
      /** The QoS */
      qos?: number;
      /** The name of the share group; "$queue" for topics that begin with "$queue/" */
      share?: string;
      /** A topic filter that covers the topic filter of the subscription */
      _match_topic?: string;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Subscription[];
    isPaged: true;
  };

  /** A list of subscriptions of a client on the node */

  'GET /nodes/{node}/subscriptions/{clientid}': {
    params: {
      node: string;
      clientid: string;
    };
    query?: {
      /** The QoS */
      qos?: number;
      /** The name of the share group; "$queue" for topics that begin with "$queue/" */
      share?: string;
      /** A topic filter that covers the topic filter of the subscription */
      _match_topic?: string;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
    };
    data: Subscription[];
    isPaged: true;
  };

  /** List the retained messages, without their payloads, in the order of their topics */

  'GET /x/retained': {
    query?: {
      /** Only topics that this topic filter matches */
      topic?: string;
      /** Only topics that begin with this */
      prefix?: string;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** The topic */
      topic: string;
      /** The QoS */
      qos: number;
      /** Size of the payload in bytes */
      payload_size: number;
      /** When the broker accepted it, in milliseconds since 1970 */
      at: number;
      /** Client id of the publisher; absent: the app or the broker published it */
      from_clientid?: string;
      /** When it expires, in milliseconds since 1970; absent: never */
      expires_at?: number;
    }[];
    isPaged: true;
  };

  /** Delete the retained messages that a topic filter matches; subscribers are not notified */

  'DELETE /x/retained': {
    query: {
      /** The topic filter */
      topic: string;
      /** The topic filter again, so that nothing is deleted by mistake */
      confirm: string;
    };
    data: {
      /** Number of messages that were deleted */
      deleted: number;
    };
  };

  /** Look up the retained message of a topic, with its payload */

  'GET /x/retained/{topic}': {
    params: {
      topic: string;
    };
    query?: {
      /** plain or base64. Default: plain if the payload is UTF-8, otherwise base64 */
      encoding?: 'plain' | 'base64';
    };
    data: {
      /** The topic */
      topic: string;
      /** The QoS */
      qos: number;
      /** True if it was published with the RETAIN flag */
      retain: boolean;
      /** When the broker accepted it, in milliseconds since 1970 */
      at: number;
      /** Client id of the publisher; absent: the app or the broker published it */
      from_clientid?: string;
      /** User name of the publisher */
      from_username?: string;
      /** Size of the payload in bytes */
      payload_size: number;
      /** The payload */
      payload: string;
      /** The encoding of the payload */
      encoding: 'plain' | 'base64';
      /** The properties of MQTT 5.0 */
      properties: {
        /** 1: the payload is UTF-8 */
        payload_format_indicator?: number;
        /** In seconds, as published */
        message_expiry_interval?: number;
        /** The kind of payload */
        content_type?: string;
        /** The topic for a response */
        response_topic?: string;
        /** The identification of the request, as Base64 */
        correlation_data?: string;
        user_properties?: {
          /** The name */
          name: string;
          /** The value */
          value: string;
        }[];
      };
      /** When it expires, in milliseconds since 1970; absent: never */
      expires_at?: number;
    };
  };

  /** Delete the retained message of a topic; subscribers are not notified */

  'DELETE /x/retained/{topic}': {
    params: {
      topic: string;
    };
    data: undefined;
  };

  /** List one level of the topic tree: topics that are retained, and topic filters that are subscribed to */

  'GET /x/topics': {
    query?: {
      /** The topic of the level above, with or without a slash at the end. Default: none */
      prefix?: string;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** The name; + and # are wildcards of topic filters */
      level: string;
      /** The topic or topic filter that ends here */
      topic: string;
      /** The parameter "prefix" of the level below */
      prefix: string;
      /** True if the topic has a retained message */
      retained: boolean;
      /** True if there are subscriptions with this topic filter */
      subscribed: boolean;
      /** Number of topics below this one that have a retained message */
      retained_below: number;
      /** Number of topic filters below this one that have subscriptions */
      subscribed_below: number;
    }[];
    isPaged: true;
  };

  /** Disconnect clients and end their sessions: those of a list, or those that satisfy conditions */

  'POST /x/clients/kick': {
    body: {
      /** The client ids; nothing else may be given */
      clientids?: string[];
      /** All clients; needed if there are no conditions */
      all?: true;
      /** The client id */
      clientid?: string;
      /** The user name */
      username?: string;
      /** The zone */
      zone?: string;
      /** The IP address of the client */
      ip_address?: string;
      /** The state of the connection */
      conn_state?: 'connected' | 'idle' | 'disconnected';
      /** True if the last CONNECT asked for a new session */
      clean_start?: boolean;
      /** The protocol: MQTT, or MQIsdp (MQTT 3.1). There are no clients of the others */
      proto_name?: 'MQTT' | 'MQIsdp' | 'CoAP' | 'LwM2M' | 'MQTT-SN';
      /** The protocol version: 3, 4 or 5 */
      proto_ver?: number;
      /** A part of the client id */
      _like_clientid?: string;
      /** A part of the user name */
      _like_username?: string;
      /** The session was created at this time or later, in seconds or milliseconds since 1970 */
      _gte_created_at?: number;
      /** The session was created at this time or earlier, in seconds or milliseconds since 1970 */
      _lte_created_at?: number;
      /** The client connected at this time or later, in seconds or milliseconds since 1970 */
      _gte_connected_at?: number;
      /** The client connected at this time or earlier, in seconds or milliseconds since 1970 */
      _lte_connected_at?: number;
    };
    data: {
      /** Number of sessions that were ended */
      count: number;
      /** Of a list, the result for each, in order */
      results?: {
        /** The client id */
        clientid: string;
        /** 0: disconnected, and its session has ended; 112: there is no such client */
        code: number;
      }[];
    };
  };

  /** Execute a DELETE for a path that is too long for a URL, or that has "." or ".." as a name */

  'POST /x/delete': {
    body: {
      /** The path behind the prefix, with percent escapes: "/auth_username/a%2Fb" */
      path: string;
    };
    data: unknown | undefined;
  };

  /** Check whether a client may publish to a topic or subscribe to a topic filter, and report what decides */

  'GET /x/rights': {
    query: {
      /** The client id. If it has a session, the rights of the client of the session are checked */
      clientid?: string;
      /** The user name of a client whose rights are checked by the given names, with or without a session */
      username?: string;
      /** The IP address of such a client */
      ip_address?: string;
      /** The zone of such a client */
      zone?: string;
      /** The requested action */
      action: 'publish' | 'subscribe';
      /** The topic name, or the topic filter of a subscription */
      topic: string;
      /** Also ask hooks of the app, and sources that ask something else, such as a server or a database */
      ask?: boolean;
    };
    data: {
      /** unknown: what was not asked may decide otherwise */
      access: 'allow' | 'deny' | 'unknown';
      /** The topic after rewriting; of a delayed message, the one to which it is published */
      topic: string;
      /** True if the rights of the client of a session were checked */
      has_session: boolean;
      /** The client id */
      clientid: string;
      /** The user name */
      username?: string;
      /** The IP address */
      ip_address?: string;
      /** True if it is exempt from access control */
      is_superuser: boolean;
      decided_by: {
        /** ban; superuser; builtin: the form of the topic, limits of the zone, $SYS; records: rules set at run time; client: rules that the client got when it connected; rules: rules of a source; source: a source that is asked; hook: a hook of the app; default: acl_nomatch */
        by: string;
        /** none: it does not decide about this; unasked: ask=true asks it; failed: it gave no answer, which denies */
        answer: 'allow' | 'deny' | 'none' | 'unasked' | 'failed';
        /** Name of the source */
        source?: string;
        /** The rule that decides, as it was written */
        rule?: {
          /** allow or deny */
          access: string;
          /** publish, subscribe or pubsub */
          action: string;
          /** The topic filter; absent: all topics except those under $SYS */
          topic?: string;
          /** Topics are compared character by character */
          exact?: boolean;
          /** The client id to which it applies */
          clientid?: string;
          /** The user name to which it applies */
          username?: string;
          /** The rule applies to clients with any user name */
          has_username?: boolean;
          /** The addresses to which it applies */
          ip_address?: string | string[];
        };
        /** Place of the rule in the list of its source, from 0 */
        index?: number;
        /** The reason code of the refusal */
        reason_code?: number;
        /** The topic filter that a hook has put in place of the requested one */
        topic?: string;
      };
      /** The checks in order; the last one has decided */
      steps: {
        /** ban; superuser; builtin: the form of the topic, limits of the zone, $SYS; records: rules set at run time; client: rules that the client got when it connected; rules: rules of a source; source: a source that is asked; hook: a hook of the app; default: acl_nomatch */
        by: string;
        /** none: it does not decide about this; unasked: ask=true asks it; failed: it gave no answer, which denies */
        answer: 'allow' | 'deny' | 'none' | 'unasked' | 'failed';
        /** Name of the source */
        source?: string;
        /** The rule that decides, as it was written */
        rule?: {
          /** allow or deny */
          access: string;
          /** publish, subscribe or pubsub */
          action: string;
          /** The topic filter; absent: all topics except those under $SYS */
          topic?: string;
          /** Topics are compared character by character */
          exact?: boolean;
          /** The client id to which it applies */
          clientid?: string;
          /** The user name to which it applies */
          username?: string;
          /** The rule applies to clients with any user name */
          has_username?: boolean;
          /** The addresses to which it applies */
          ip_address?: string | string[];
        };
        /** Place of the rule in the list of its source, from 0 */
        index?: number;
        /** The reason code of the refusal */
        reason_code?: number;
        /** The topic filter that a hook has put in place of the requested one */
        topic?: string;
      }[];
    };
  };

  /** Look up a session: its client, subscriptions with their options, and what is in flight */

  'GET /x/sessions/{clientid}': {
    params: {
      clientid: string;
    };
    data: {
      client: Client;
      subscriptions: {
        /** The topic filter */
        topic: string;
        /** The QoS */
        qos: number;
        /** The client does not receive its own messages */
        no_local: boolean;
        /** Messages keep the RETAIN flag with which they were published */
        retain_as_published: boolean;
        /** When retained messages are sent: 0 always, 1 if it is new, 2 never */
        retain_handling: number;
        /** The subscription identifier */
        subscription_id?: number;
      }[];
      /** Messages to the client, in the order in which they were first sent */
      inflight: {
        /** The packet id */
        packet_id: number;
        /** The packet that the client has to send */
        awaits: 'puback' | 'pubrec' | 'pubcomp';
        /** The QoS */
        qos: number;
        /** True if the PUBLISH has been sent */
        sent: boolean;
        /** The topic, if the message is in memory */
        topic?: string;
        /** Size of its payload in bytes */
        payload_size?: number;
      }[];
      /** Packet ids of messages from the client that wait for PUBREL */
      awaiting_rel: number[];
      /** Number of queued messages */
      queued: number;
    };
  };

  /** List the queued messages of a client, connected or not, in order of arrival */

  'GET /x/sessions/{clientid}/queue': {
    params: {
      clientid: string;
    };
    query?: {
      /** plain or base64. Default: plain if the payload is UTF-8, otherwise base64 */
      encoding?: 'plain' | 'base64';
      /** false: without the payloads */
      payload?: boolean;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** The topic */
      topic: string;
      /** The QoS with which it is to be sent */
      qos: number;
      /** The RETAIN flag with which it is to be sent */
      retain: boolean;
      /** When the broker accepted it, in milliseconds since 1970 */
      at: number;
      /** Client id of the publisher; absent: the app or the broker published it */
      from_clientid?: string;
      /** User name of the publisher */
      from_username?: string;
      /** Size of the payload in bytes */
      payload_size: number;
      /** The properties of MQTT 5.0 */
      properties: {
        /** 1: the payload is UTF-8 */
        payload_format_indicator?: number;
        /** In seconds, as published */
        message_expiry_interval?: number;
        /** The kind of payload */
        content_type?: string;
        /** The topic for a response */
        response_topic?: string;
        /** The identification of the request, as Base64 */
        correlation_data?: string;
        user_properties?: {
          /** The name */
          name: string;
          /** The value */
          value: string;
        }[];
      };
      /** Subscription identifiers */
      subscription_ids?: number[];
      /** When it expires, in milliseconds since 1970; absent: never */
      expires_at?: number;
      /** The payload */
      payload?: string;
      /** The encoding of the payload */
      encoding?: 'plain' | 'base64';
    }[];
    isPaged: true;
  };

  /** Drop the queued messages of a client */

  'DELETE /x/sessions/{clientid}/queue': {
    params: {
      clientid: string;
    };
    data: {
      /** Number of messages that were dropped */
      dropped: number;
    };
  };

  /** Export credentials, access rules, bans, applications, users, features, settings and stopped sources as one document, with hashes only */

  'GET /x/export': {
    data: {
      /** embermq-configuration */
      format: string;
      /** Version of the document */
      version: number;
      /** Name of the node that was exported */
      node?: string;
      /** When, in milliseconds since 1970 */
      exportedAt?: number;
      /** The entries by section. Sections may be left out */
      sections: {
        /** Client ids with hashes of their passwords */
        clientIds?: unknown[];
        /** User names with hashes of their passwords */
        usernames?: unknown[];
        /** User names that can be superusers, with hashes of their passwords */
        logins?: unknown[];
        /** Access rules, the oldest first */
        acl?: unknown[];
        /** Bans */
        banned?: unknown[];
        /** Applications with hashes of their secrets */
        applications?: unknown[];
        /** Users of the management interface with hashes of their passwords */
        users?: unknown[];
        /** Which features are started */
        features?: unknown[];
        /** Options that were set at run time: key and value */
        settings?: unknown[];
        /** Names of the sources that are stopped */
        stoppedSources?: unknown[];
        /** Resources of rules, with their passwords */
        resources?: unknown[];
        /** Rules over broker events */
        rules?: unknown[];
      };
    };
  };

  /** Import such a document: check all of it, then change the sections that it has */

  'POST /x/import': {
    query?: {
      /** merge: add what is absent; replace: make the sections equal to the document */
      mode?: 'merge' | 'replace';
    };
    body: {
      /** embermq-configuration */
      format: string;
      /** Version of the document */
      version: number;
      /** Name of the node that was exported */
      node?: string;
      /** When, in milliseconds since 1970 */
      exportedAt?: number;
      /** The entries by section. Sections may be left out */
      sections: {
        /** Client ids with hashes of their passwords */
        clientIds?: unknown[];
        /** User names with hashes of their passwords */
        usernames?: unknown[];
        /** User names that can be superusers, with hashes of their passwords */
        logins?: unknown[];
        /** Access rules, the oldest first */
        acl?: unknown[];
        /** Bans */
        banned?: unknown[];
        /** Applications with hashes of their secrets */
        applications?: unknown[];
        /** Users of the management interface with hashes of their passwords */
        users?: unknown[];
        /** Which features are started */
        features?: unknown[];
        /** Options that were set at run time: key and value */
        settings?: unknown[];
        /** Names of the sources that are stopped */
        stoppedSources?: unknown[];
        /** Resources of rules, with their passwords */
        resources?: unknown[];
        /** Rules over broker events */
        rules?: unknown[];
      };
    };
    data: {
      sections: {
        [name: string]: {
          /** Entries that were absent */
          added: number;
          /** Entries that were there, and now are as in the document */
          replaced: number;
          /** Entries that were not in the document */
          removed: number;
          /** Entries that were there, and stay as they are */
          skipped: number;
        };
      };
      errors: {
        /** The section, the rest of which was left as it is */
        section: string;
        /** The subject of the entry */
        entry: string;
        /** Why it could not be changed */
        message: string;
      }[];
    };
  };

  /** List the webhooks with their states */

  'GET /x/webhooks': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    }[];
    isPaged: true;
  };

  /** Create a webhook, which is started now and at each start of the broker */

  'POST /x/webhooks': {
    body: { [name: string]: unknown };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    };
  };

  /** Look up a webhook */

  'GET /x/webhooks/{name}': {
    params: {
      name: string;
    };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    };
  };

  /** Replace the options of a webhook; if they change, its queue is dropped unless isPersisted is set */

  'PUT /x/webhooks/{name}': {
    params: {
      name: string;
    };
    body: { [name: string]: unknown };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    };
  };

  /** Delete a webhook */

  'DELETE /x/webhooks/{name}': {
    params: {
      name: string;
    };
    data: undefined;
  };

  /** Start a webhook */

  'POST /x/webhooks/{name}/start': {
    params: {
      name: string;
    };
    data: undefined;
  };

  /** Stop a webhook; queued events are still sent */

  'POST /x/webhooks/{name}/stop': {
    params: {
      name: string;
    };
    data: undefined;
  };

  /** List the bridges with their states */

  'GET /x/bridges': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    }[];
    isPaged: true;
  };

  /** Create a bridge to another MQTT server, which is started now and at each start of the broker */

  'POST /x/bridges': {
    body: { [name: string]: unknown };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    };
  };

  /** Look up a bridge to another MQTT server */

  'GET /x/bridges/{name}': {
    params: {
      name: string;
    };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    };
  };

  /** Replace the options of a bridge to another MQTT server; if they change, its queue is dropped unless isPersisted is set */

  'PUT /x/bridges/{name}': {
    params: {
      name: string;
    };
    body: { [name: string]: unknown };
    data: {
      /** The name: letters, digits, ".", "-" and "_" */
      name: string;
      /** True if it is started */
      started: boolean;
      /** The current state; missing: it could not be created, see last_error */
      status: string;
      /** Number of queued entries */
      waiting: number;
      /** Counters since it was created, such as sent and dropped */
      figures: { [name: string]: number };
      /** Why the last attempt has failed; absent after a success */
      last_error?: string;
      /** The options, with ****** for secrets; absent: created by the app or the configuration of the process */
      settings?: { [name: string]: unknown };
    };
  };

  /** Delete a bridge to another MQTT server */

  'DELETE /x/bridges/{name}': {
    params: {
      name: string;
    };
    data: undefined;
  };

  /** Start a bridge to another MQTT server */

  'POST /x/bridges/{name}/start': {
    params: {
      name: string;
    };
    data: undefined;
  };

  /** Stop a bridge to another MQTT server; its queue is kept */

  'POST /x/bridges/{name}/stop': {
    params: {
      name: string;
    };
    data: undefined;
  };

  /** List the last 1,000 changes made through management interfaces, the newest first */

  'GET /x/audit': {
    query?: {
      /** Only this operation, by its name in the index */
      operation?: string;
      /** Only requests of this application or user, by its id */
      caller?: string;
      /** true: only what was refused or has failed; false: all else */
      failed?: boolean;
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** Time of the answer, in milliseconds since 1970; of several requests, of the last */
      at: number;
      /** Name of the operation */
      operation: string;
      caller: {
        /** application, user, function, host or none: what has accepted the credentials */
        kind: string;
        /** The id of the credentials */
        id?: string;
      };
      /** IP address of the caller */
      address?: string;
      /** Method and path of the operation */
      request: string;
      /** Parameters of the path, the query and the body, without secrets and payloads; of a batch, 20 entries */
      parameters: { [name: string]: unknown };
      /** HTTP status of the answer */
      status: number;
      /** Code of the answer; 0: success */
      code: number;
      /** Number of requests in a row; only publications are counted together */
      count: number;
    }[];
    isPaged: true;
  };

  /** List the last 1,000 dropped messages, the newest first */

  'GET /x/drops': {
    query?: {
      /** Only drops of this client, as receiver or publisher */
      clientid?: string;
      /** Only drops whose topic matches this topic filter */
      topic?: string;
      /** Only drops for this reason */
      reason?:
        | 'no_subscribers'
        | 'expired'
        | 'queue_full'
        | 'queue_cleared'
        | 'total_queue_full'
        | 'qos0_msg'
        | 'too_large'
        | 'no_local'
        | 'hook'
        | 'topic_invalid'
        | 'not_authorized'
        | 'slow_consumer'
        | 'session_terminated'
        | 'not_retained'
        | 'quota'
        | 'store_failed'
        | 'server_shutting_down';
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** When the message was dropped, in milliseconds since 1970; of several the last one */
      at: number;
      /** The topic: its first 256 characters */
      topic: string;
      /** The QoS of the message */
      qos: number;
      /** The receiver that does not get the message; absent: no receiver gets it */
      clientid?: string;
      /** The publisher; empty: the app that runs the broker */
      from_clientid: string;
      /** Why the message was dropped */
      reason:
        | 'no_subscribers'
        | 'expired'
        | 'queue_full'
        | 'queue_cleared'
        | 'total_queue_full'
        | 'qos0_msg'
        | 'too_large'
        | 'no_local'
        | 'hook'
        | 'topic_invalid'
        | 'not_authorized'
        | 'slow_consumer'
        | 'session_terminated'
        | 'not_retained'
        | 'quota'
        | 'store_failed'
        | 'server_shutting_down';
      /** Number of messages in a row to which all this applies */
      count: number;
    }[];
    isPaged: true;
  };

  /** Forget the dropped messages */

  'DELETE /x/drops': {
    data: undefined;
  };

  /** List the traces: the active ones, and those that have ended and whose lines are kept */

  'GET /x/traces': {
    data: {
      /** Number of the trace */
      id: number;
      clientid?: string;
      topic?: string;
      ip_address?: string;
      /** In milliseconds since 1970 */
      started_at: number;
      /** active, or why it has ended: stopped, duration, error, closed, broker_stopped */
      status: string;
      /** Number of lines so far */
      lines: number;
      /** The size of these lines; of lines that can be read here, the size of what was recorded for them */
      bytes: number;
      /** Number of lines that can be read; absent if the app has begun the trace */
      kept_lines?: number;
    }[];
  };

  /** Trace a client, the messages of a topic filter or the clients of an address */

  'POST /x/traces': {
    body: {
      /** Trace this client */
      clientid?: string;
      /** Trace messages whose topic matches this topic filter */
      topic?: string;
      /** Trace the clients of this IP address or network */
      ip_address?: string;
      /** The form of payloads */
      payload?: 'text' | 'hex' | 'base64' | 'none';
      /** Bytes of each payload that are written */
      max_payload_bytes?: number;
      /** The trace ends after this time, in seconds */
      duration_s?: number;
    };
    data: {
      /** Number of the trace */
      id: number;
      clientid?: string;
      topic?: string;
      ip_address?: string;
      /** In milliseconds since 1970 */
      started_at: number;
      /** active, or why it has ended: stopped, duration, error, closed, broker_stopped */
      status: string;
      /** Number of lines so far */
      lines: number;
      /** The size of these lines; of lines that can be read here, the size of what was recorded for them */
      bytes: number;
      /** Number of lines that can be read; absent if the app has begun the trace */
      kept_lines?: number;
    };
  };

  /** Look up a trace */

  'GET /x/traces/{id}': {
    params: {
      id: string;
    };
    data: {
      /** Number of the trace */
      id: number;
      clientid?: string;
      topic?: string;
      ip_address?: string;
      /** In milliseconds since 1970 */
      started_at: number;
      /** active, or why it has ended: stopped, duration, error, closed, broker_stopped */
      status: string;
      /** Number of lines so far */
      lines: number;
      /** The size of these lines; of lines that can be read here, the size of what was recorded for them */
      bytes: number;
      /** Number of lines that can be read; absent if the app has begun the trace */
      kept_lines?: number;
    };
  };

  /** Stop a trace and forget its lines */

  'DELETE /x/traces/{id}': {
    params: {
      id: string;
    };
    data: undefined;
  };

  /** List the last lines of a trace, the oldest first */

  'GET /x/traces/{id}/lines': {
    params: {
      id: string;
    };
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** Number of the line, which is also a cursor */
      number: number;
      /** The line, as the README describes it */
      record: { [name: string]: unknown };
    }[];
    isPaged: true;
  };

  /** Counters and gauges of the last hour, every ten seconds */

  'GET /x/figures': {
    query?: {
      /** Names of counters and gauges, separated by commas: bytes.received, bytes.sent, packets.received, packets.sent, packets.connect.received, packets.connack.sent, packets.connack.error, packets.connack.auth_error, packets.publish.received, packets.publish.sent, packets.publish.error, packets.publish.auth_error, packets.publish.inuse, packets.publish.dropped, packets.puback.received, packets.puback.sent, packets.puback.missed, packets.puback.inuse, packets.pubrec.received, packets.pubrec.sent, packets.pubrec.missed, packets.pubrec.inuse, packets.pubrel.received, packets.pubrel.sent, packets.pubrel.missed, packets.pubcomp.received, packets.pubcomp.sent, packets.pubcomp.missed, packets.pubcomp.inuse, packets.subscribe.received, packets.subscribe.error, packets.subscribe.auth_error, packets.suback.sent, packets.unsubscribe.received, packets.unsubscribe.error, packets.unsuback.sent, packets.pingreq.received, packets.pingresp.sent, packets.disconnect.received, packets.disconnect.sent, packets.auth.received, packets.auth.sent, messages.received, messages.sent, messages.qos0.received, messages.qos0.sent, messages.qos1.received, messages.qos1.sent, messages.qos2.received, messages.qos2.sent, messages.qos2.expired, messages.qos2.dropped, messages.publish, messages.dropped, messages.dropped.expired, messages.dropped.no_subscribers, messages.not_retained, messages.expired, messages.forward, messages.delivered, messages.acked, delivery.dropped, delivery.dropped.no_local, delivery.dropped.too_large, delivery.dropped.qos0_msg, delivery.dropped.queue_full, delivery.dropped.expired, delivery.dropped.hook, delivery.dropped.slow_consumer, client.connect, client.connack, client.connected, client.authenticate, client.auth.anonymous, client.auth.success, client.auth.failure, client.auth.ignore, client.check_acl, client.acl.allow, client.acl.deny, client.acl.ignore, client.acl.cache_hit, client.subscribe, client.unsubscribe, client.disconnected, session.created, session.resumed, session.takeovered, session.discarded, session.terminated, connections.refused, overload.shed, outbox.sent, outbox.failed, outbox.dropped, rules.matched, actions.success, actions.failure, connections.count, channels.count, sessions.count, sessions.persistent.count, topics.count, suboptions.count, subscribers.count, subscriptions.count, subscriptions.shared.count, routes.count, retained.count, rules.count, actions.count, resources.count, messages.retained, messages.delayed, outbox.waiting. Default: messages.received, messages.sent, messages.dropped, delivery.dropped, bytes.received, bytes.sent, client.connected, client.disconnected, connections.count, sessions.count, subscriptions.count, retained.count */
      names?: string;
      /** The first time, in milliseconds since 1970. Default: all samples */
      from?: number;
    };
    data: {
      /** The times of the samples, in milliseconds since 1970 */
      at: number[];
      /** By name the values at these times: counters per second, gauges as they were */
      series: { [name: string]: number[] };
    };
  };

  /** List the counters of all topic filters whose messages are counted */

  'GET /x/topic_figures': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** The topic filter */
      topic: string;
      /** When counting has begun, in milliseconds since 1970 */
      since: number;
      /** Messages since then */
      'messages.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.in.rate': number;
      /** Messages since then */
      'messages.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.out.rate': number;
      /** Messages since then */
      'messages.dropped.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.dropped.rate': number;
      /** Messages since then */
      'messages.qos0.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos0.in.rate': number;
      /** Messages since then */
      'messages.qos0.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos0.out.rate': number;
      /** Messages since then */
      'messages.qos1.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos1.in.rate': number;
      /** Messages since then */
      'messages.qos1.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos1.out.rate': number;
      /** Messages since then */
      'messages.qos2.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos2.in.rate': number;
      /** Messages since then */
      'messages.qos2.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos2.out.rate': number;
    }[];
    isPaged: true;
  };

  /** Count the messages whose topic matches a topic filter */

  'POST /x/topic_figures': {
    body: {
      /** The topic filter */
      topic: string;
    };
    data: undefined;
  };

  /** Stop counting for all topic filters */

  'DELETE /x/topic_figures': {
    data: undefined;
  };

  /** Look up the counters of a topic filter */

  'GET /x/topic_figures/{topic}': {
    params: {
      topic: string;
    };
    data: {
      /** The topic filter */
      topic: string;
      /** When counting has begun, in milliseconds since 1970 */
      since: number;
      /** Messages since then */
      'messages.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.in.rate': number;
      /** Messages since then */
      'messages.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.out.rate': number;
      /** Messages since then */
      'messages.dropped.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.dropped.rate': number;
      /** Messages since then */
      'messages.qos0.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos0.in.rate': number;
      /** Messages since then */
      'messages.qos0.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos0.out.rate': number;
      /** Messages since then */
      'messages.qos1.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos1.in.rate': number;
      /** Messages since then */
      'messages.qos1.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos1.out.rate': number;
      /** Messages since then */
      'messages.qos2.in.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos2.in.rate': number;
      /** Messages since then */
      'messages.qos2.out.count': number;
      /** Messages per second, in the last ten seconds */
      'messages.qos2.out.rate': number;
    };
  };

  /** Stop counting for a topic filter */

  'DELETE /x/topic_figures/{topic}': {
    params: {
      topic: string;
    };
    data: undefined;
  };

  /** List the clients and topics with the longest latencies, the slowest first */

  'GET /x/slow_subscriptions': {
    data: {
      /** True if latencies are measured */
      enabled: boolean;
      /** Shorter latencies are not considered */
      threshold_ms?: number;
      /** Number of places of the ranking */
      limit?: number;
      /** An entry that was not slow for so many seconds is removed */
      expiry_s?: number;
      /** The slowest first */
      subscriptions: {
        /** The client id */
        clientid: string;
        /** The topic of the messages */
        topic: string;
        /** The greatest time from publication to acknowledgement, or with QoS 0 to the handover to the connection */
        latency_ms: number;
        /** Number of slow messages */
        count: number;
        /** Time of the last one, in milliseconds since 1970 */
        at: number;
      }[];
    };
  };

  /** Start measuring latencies, or change the limits */

  'PUT /x/slow_subscriptions': {
    body: {
      /** false: stop measuring latencies */
      enabled?: boolean;
      /** Shorter latencies are not considered */
      threshold_ms?: number;
      /** Number of places of the ranking */
      limit?: number;
      /** An entry that was not slow for so many seconds is removed */
      expiry_s?: number;
    };
    data: {
      /** True if latencies are measured */
      enabled: boolean;
      /** Shorter latencies are not considered */
      threshold_ms?: number;
      /** Number of places of the ranking */
      limit?: number;
      /** An entry that was not slow for so many seconds is removed */
      expiry_s?: number;
      /** The slowest first */
      subscriptions: {
        /** The client id */
        clientid: string;
        /** The topic of the messages */
        topic: string;
        /** The greatest time from publication to acknowledgement, or with QoS 0 to the handover to the connection */
        latency_ms: number;
        /** Number of slow messages */
        count: number;
        /** Time of the last one, in milliseconds since 1970 */
        at: number;
      }[];
    };
  };

  /** Stop measuring latencies, and delete the ranking */

  'DELETE /x/slow_subscriptions': {
    data: undefined;
  };

  /** List the clients that currently read more slowly than messages are sent to them */

  'GET /x/slow_consumers': {
    query?: {
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** The client id */
      clientid: string;
      /** Time since which its connection has sent nothing, in milliseconds since 1970 */
      stalled_since: number;
      /** Bytes that its connection has not sent */
      unsent_bytes: number;
      /** Messages that wait behind them in memory */
      queued_messages: number;
      /** The size of these messages, in bytes */
      queued_bytes: number;
    }[];
    isPaged: true;
  };

  /** The size of the store, and what is written to it */

  'GET /x/store': {
    query?: {
      /** Count the records by kind: this reads all of the store */
      records?: boolean;
    };
    data: {
      /** True if the broker has a store; otherwise the other fields are absent */
      has_store: boolean;
      /** Name of the store, for example its folder */
      name?: string;
      /** True if the last commit has failed, so that nothing can be persisted */
      failed?: boolean;
      /** Size, with the space of deleted records; absent if the store does not tell */
      size_bytes?: number;
      /** Bytes that can be written before the reserve is used; absent if the store does not tell */
      free_bytes?: number;
      /** Bytes that are not committed yet */
      unwritten_bytes?: number;
      /** Commits since the store was created */
      commits?: number;
      /** Commits per second since the request before, at least a second ago */
      commits_per_s?: number;
      /** Number and size of the records by kind */
      records?: {
        [name: string]: {
          records: number;
          bytes: number;
        };
      };
      /** false: there are more records; ten seconds were not enough to count them */
      records_complete?: boolean;
    };
  };

  /** List the options of the broker with their sources, by key */

  'GET /x/options': {
    query?: {
      /** Only options whose value is from there */
      source?: 'default' | 'option' | 'override';
      /** Number of the page; less than 1 counts as 1 */
      _page?: number;
      /** Rows of a page; more than the greatest number counts as that */
      _limit?: number;
      /** The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go */
      cursor?: string;
    };
    data: {
      /** Documented name: "zone.external.max_inflight" */
      key: string;
      /** Name in camelCase */
      name: string;
      /** Zone; absent: the broker, or all zones without their own value */
      zone?: string;
      /** Present value, as it can be sent back; "": none */
      value: string | number | boolean;
      /** Value without options and overrides */
      default: string | number | boolean;
      /** Kind of the value: "integer", "duration", "size", ... */
      kind: string;
      /** "option": given to the broker; "override": set at run time */
      source: 'default' | 'option' | 'override';
      /** The source of the value in the app: "--max-inflight" */
      origin?: string;
      /** When a change takes effect */
      takes_effect: 'now' | 'next connection' | 'restart';
      /** The purpose of the option */
      about: string;
    }[];
    isPaged: true;
  };

  /** Look up an option by any spelling of its name */

  'GET /x/options/{key}': {
    params: {
      key: string;
    };
    data: {
      /** Documented name: "zone.external.max_inflight" */
      key: string;
      /** Name in camelCase */
      name: string;
      /** Zone; absent: the broker, or all zones without their own value */
      zone?: string;
      /** Present value, as it can be sent back; "": none */
      value: string | number | boolean;
      /** Value without options and overrides */
      default: string | number | boolean;
      /** Kind of the value: "integer", "duration", "size", ... */
      kind: string;
      /** "option": given to the broker; "override": set at run time */
      source: 'default' | 'option' | 'override';
      /** The source of the value in the app: "--max-inflight" */
      origin?: string;
      /** When a change takes effect */
      takes_effect: 'now' | 'next connection' | 'restart';
      /** The purpose of the option */
      about: string;
    };
  };

  /** Remove what was set for an option at run time */

  'DELETE /x/options/{key}': {
    params: {
      key: string;
    };
    data: undefined;
  };
}

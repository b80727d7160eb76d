// The parameters of the resource and of the action of rules that publish to another MQTT server, with the names, titles and
// defaults of the original interface.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of rules
import type { Field, FieldTable } from '../../lib/adapter.ts';
import { TLS_PARAMS } from '../outgoing/index.ts';

const SWITCH = ['on', 'off'];

const MOUNTPOINT: Field = {
  order: 9,
  type: 'string',
  default: 'bridge/aws/${node}/',
  title: 'Mountpoint',
  about: 'Prefix of the topics at the remote server. ${node} stands for the name of this node. Default: none.',
  zh: { title: '挂载点', about: '远程服务器上主题的前缀，${node} 表示本节点的名称。不填则没有前缀。' }
};

const RECONNECT_INTERVAL: Field = {
  order: 11,
  type: 'string',
  format: 'duration',
  default: '30s',
  title: 'Reconnect Interval',
  about: 'Maximum time between two attempts to connect or to send while messages are queued.',
  zh: { title: '重连间隔', about: '有消息等待发送时，两次连接或发送尝试之间的最长间隔。' }
};

const DISK_CACHE: Field = {
  order: 4,
  type: 'string',
  choices: SWITCH,
  default: 'off',
  title: 'Disk Cache',
  about: 'Keep queued messages in the store of the broker, so that they are sent after a restart.',
  zh: { title: '磁盘缓存', about: '将等待发送的消息保存在 broker 的存储中，重启后继续发送。' }
};

/** Parameters of the resource `bridge_mqtt`. */
export const BRIDGE_MQTT_PARAMS: FieldTable = {
  address: {
    type: 'string',
    required: true,
    default: '127.0.0.1:1883',
    title: 'Address',
    about: 'Host and port of the remote MQTT server, or a URL such as wss://host/mqtt.',
    zh: { title: '地址', about: '远程 MQTT 服务器的主机名和端口，或 wss://host/mqtt 形式的 URL。' }
  },
  proto_ver: {
    type: 'string',
    choices: ['mqttv3', 'mqttv4', 'mqttv5'],
    default: 'mqttv4',
    title: 'Protocol Version',
    about: 'MQTT 3.1, 3.1.1 or 5.0. Properties of messages are forwarded with MQTT 5.0 only.',
    zh: { title: '协议版本', about: 'MQTT 3.1、3.1.1 或 5.0。只有使用 MQTT 5.0 时才会转发消息的属性。' }
  },
  pool_size: {
    type: 'number',
    required: true,
    min: 1,
    max: 1024,
    default: 8,
    title: 'Pool Size',
    about: 'Without effect: there is one connection, over which the messages of each rule stay in order.',
    zh: { title: '连接池大小', about: '该参数不起作用：始终只使用一个连接，以保证每条规则的消息顺序。' }
  },
  disk_cache: DISK_CACHE,
  clientid: {
    type: 'string',
    default: 'client',
    title: 'Client ID',
    about: 'Client id at the remote server. Default: the id of the resource.',
    zh: { title: '客户端 ID', about: '连接远程服务器使用的客户端 ID。不填则使用资源 ID。' }
  },
  append: {
    type: 'boolean',
    default: true,
    title: 'Append Unique ID',
    about: 'Append "_" and a unique id to the client id, so that two nodes do not disconnect each other.',
    zh: { title: '附加唯一标识', about: '在客户端 ID 后附加下划线和唯一标识，避免多个节点互相踢下线。' }
  },
  username: {
    type: 'string',
    default: 'user',
    title: 'User Name',
    about: 'User name at the remote server.',
    zh: { title: '用户名', about: '连接远程服务器的用户名。' }
  },
  password: {
    type: 'string',
    input: 'password',
    default: 'passwd',
    isSecret: true,
    title: 'Password',
    about: 'Password at the remote server.',
    zh: { title: '密码', about: '连接远程服务器的密码。' }
  },
  mountpoint: MOUNTPOINT,
  keepalive: {
    type: 'string',
    format: 'duration',
    required: true,
    default: '60s',
    title: 'Keep Alive',
    about: 'Time without messages after which the connection is tested.',
    zh: { title: '心跳间隔', about: '没有消息时发送心跳检测连接的间隔。' }
  },
  reconnect_interval: RECONNECT_INTERVAL,
  retry_interval: {
    type: 'string',
    format: 'duration',
    default: '20s',
    title: 'Retry Interval',
    about: 'Time without an acknowledgement after which the connection is closed and messages are sent again.',
    zh: { title: '重传间隔', about: '未收到确认时关闭连接并重新发送消息的等待时间。' }
  },
  bridge_mode: {
    type: 'boolean',
    default: true,
    title: 'Bridge Mode',
    about: 'Without effect: it concerns messages from the remote server, and this resource has no subscriptions.',
    zh: { title: '桥接模式', about: '该参数不起作用：桥接模式只影响来自远程服务器的消息，而该资源没有订阅。' }
  },
  ssl: {
    type: 'string',
    choices: SWITCH,
    required: true,
    default: 'off',
    title: 'TLS',
    about: 'Connect with TLS. The certificate of the server is always verified.',
    zh: { title: 'TLS', about: '使用 TLS 连接，始终验证服务器证书。' }
  },
  cacertfile: {
    ...TLS_PARAMS.ca,
    about: 'Certificate authorities as PEM text, instead of those of Node. No file is read.',
    zh: {
      ...TLS_PARAMS.ca.zh,
      about: 'CA 证书的 PEM 格式文本，代替 Node 自带的 CA 证书。不会读取文件。'
    }
  },
  certfile: TLS_PARAMS.cert,
  keyfile: TLS_PARAMS.key,
  ciphers: {
    type: 'string',
    default: 'ECDHE-ECDSA-AES256-GCM-SHA384,ECDHE-RSA-AES256-GCM-SHA384',
    title: 'Cipher Suites',
    about: 'Names of cipher suites, separated by commas. Default: those of Node.',
    zh: { title: '加密套件', about: '加密套件的名称，以逗号分隔。不填则使用 Node 的默认值。' }
  },
  servername: TLS_PARAMS.servername
};

/** Parameters of the resource `bridge_rpc`. */
export const BRIDGE_RPC_PARAMS: FieldTable = {
  address: {
    type: 'string',
    required: true,
    default: 'emqx2@127.0.0.1',
    title: 'Node',
    about: 'Name of the remote node.',
    zh: { title: '节点', about: '远程节点的名称。' }
  },
  pool_size: {
    type: 'number',
    required: true,
    default: 8,
    title: 'Pool Size',
    about: 'Number of connections.',
    zh: { title: '连接池大小', about: '连接的数量。' }
  },
  batch_size: {
    type: 'number',
    default: 32,
    title: 'Batch Size',
    about: 'Number of messages that are sent together.',
    zh: { title: '批量大小', about: '一次发送的消息数量。' }
  },
  disk_cache: DISK_CACHE,
  mountpoint: MOUNTPOINT,
  reconnect_interval: RECONNECT_INTERVAL
};

/** Parameters of the action `data_to_mqtt_broker`. */
export const DATA_TO_MQTT_BROKER_PARAMS: FieldTable = {
  forward_topic: {
    type: 'string',
    default: '',
    title: 'Forward Topic',
    about:
      'Topic at the remote server, after the mountpoint, with placeholders such as ${clientid}. Empty: the topic of the message.',
    zh: {
      title: '转发主题',
      about: '转发到远程服务器的主题（位于挂载点之后），支持 ${clientid} 形式的占位符。为空时使用原消息的主题。'
    }
  },
  payload_tmpl: {
    type: 'string',
    input: 'textarea',
    default: '',
    title: 'Payload Template',
    about: 'Payload, with placeholders such as ${payload} for values of the output. Empty: the whole output as JSON.',
    zh: {
      title: '消息内容模板',
      about: '消息内容模板，支持使用 ${payload} 形式的占位符引用规则输出的值。为空时发送规则的全部输出（JSON 格式）。'
    }
  }
};

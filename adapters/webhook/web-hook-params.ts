// The parameters of the resource `web_hook` and of its action, with the names, titles and defaults of the original
// interface.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of rules
import type { FieldTable } from '../../lib/adapter.ts';
import { TLS_PARAMS } from '../outgoing/index.ts';

/** The request methods. GET and DELETE have no body. */
const METHODS = ['POST', 'PUT', 'GET', 'DELETE'] as const;

/** Parameters of the resource `web_hook`: first the documented ones, then those of its connections. */
export const WEB_HOOK_PARAMS: FieldTable = {
  url: {
    type: 'string',
    format: 'url',
    required: true,
    title: 'Request URL',
    about: 'URL of the requests, without user name, password and placeholders.',
    zh: { title: '请求 URL', about: '请求发送到的 URL，其中不能包含用户名、密码和占位符。' }
  },
  method: {
    type: 'string',
    choices: METHODS,
    default: 'POST',
    title: 'Request Method',
    about: 'HTTP method. Requests with GET and DELETE have no body.',
    zh: { title: '请求方法', about: 'HTTP 请求方法。GET 和 DELETE 请求不带请求体。' }
  },
  headers: {
    type: 'object',
    fields: {},
    default: {},
    isSecret: true,
    title: 'Request Headers',
    about: 'Additional headers of each request. Their values are never shown.',
    zh: { title: '请求头', about: '每个请求附加的 HTTP 请求头，其值不会显示。' }
  },
  connect_timeout: {
    type: 'number',
    min: 0.1,
    max: 3600,
    default: 5,
    title: 'Connect Timeout',
    about: 'Seconds within which a connection must be established.',
    zh: { title: '连接超时时间', about: '建立连接的超时时间，单位为秒。' }
  },
  request_timeout: {
    type: 'number',
    min: 0.1,
    max: 3600,
    default: 5,
    title: 'Request Timeout',
    about:
      'Seconds within which the answer to a request must begin, including the time for connecting. Later the request is sent again.',
    zh: {
      title: '请求超时时间',
      about: '从发起请求（包括建立连接）到开始收到响应的超时时间，单位为秒。超时的请求会重新发送。'
    }
  },
  pool_size: {
    type: 'number',
    min: 1,
    max: 1000,
    default: 32,
    title: 'Pool Size',
    about: 'Maximum number of connections to the server. Requests of one rule are sent one after the other.',
    zh: { title: '连接池大小', about: '到服务器的最大连接数。同一条规则的请求按顺序逐个发送。' }
  },
  content_type: {
    type: 'string',
    choices: ['application/json', 'text/plain', 'text/plain;charset=UTF-8'],
    default: 'application/json',
    title: 'Content-Type',
    about: 'Type of the body. A header "content-type" takes precedence, and can have any other value.',
    zh: {
      title: 'Content-Type',
      about: '请求体的类型。如果请求头中设置了 content-type，则以请求头为准，且可以使用其他任意值。'
    }
  },
  ...TLS_PARAMS,
  fail_on_status: {
    type: 'boolean',
    default: true,
    title: 'Fail on Status',
    about:
      'Requests that are not answered with a status from 200 to 299 have failed. They are sent again after a status of 500 and above, 408, 425 and 429, and dropped after others; the header Retry-After is observed. If it is false, each answer counts as success.',
    zh: {
      title: '检查状态码',
      about:
        '状态码不在 200 到 299 之间的请求视为失败。状态码为 500 及以上、408、425 或 429 时会重新发送（遵循 Retry-After 响应头），其他状态码则丢弃该请求。设为 false 时，收到任何响应都视为成功。'
    }
  },
  persisted: {
    type: 'boolean',
    default: false,
    title: 'Persisted',
    about: 'Keep queued requests in the store of the broker, so that they are sent after a restart.',
    zh: { title: '持久化', about: '将等待发送的请求保存在 broker 的存储中，重启后继续发送。' }
  },
  public_only: {
    type: 'boolean',
    default: false,
    title: 'Public Addresses Only',
    about: 'Do not connect to addresses of this machine and of private networks.',
    zh: { title: '仅限公网地址', about: '不连接本机地址和私有网络地址。' }
  }
};

/** Parameters of the action `data_to_webserver`. */
export const DATA_TO_WEBSERVER_PARAMS: FieldTable = {
  payload_tmpl: {
    type: 'string',
    input: 'textarea',
    default: '',
    title: 'Payload Template',
    about:
      'Body of the request, with placeholders such as ${payload.x} for values of the output. Empty: the whole output as JSON.',
    zh: {
      title: '消息内容模板',
      about: '请求体模板，支持使用 ${payload.x} 形式的占位符引用规则输出的值。为空时发送规则的全部输出（JSON 格式）。'
    }
  },
  path: {
    type: 'string',
    default: '',
    title: 'Path',
    about:
      'Path, and possibly a query, that is appended to the URL, with placeholders such as ${clientid}. Values are percent-encoded; in the path, a slash stays.',
    zh: {
      title: '路径',
      about:
        '追加到 URL 后的路径，可包含查询参数，支持 ${clientid} 形式的占位符。占位符的值会进行百分号编码，路径中的斜杠保持不变。'
    }
  },
  method: {
    type: 'string',
    choices: METHODS,
    title: 'Request Method',
    about: 'HTTP method. Default: that of the resource.',
    zh: { title: '请求方法', about: 'HTTP 请求方法。默认使用资源中的请求方法。' }
  },
  headers: {
    type: 'object',
    fields: {},
    default: {},
    isSecret: true,
    title: 'Request Headers',
    about:
      'Headers in addition to those of the resource, with placeholders in their values. Their values are never shown.',
    zh: { title: '请求头', about: '除资源中的请求头之外附加的请求头，其值支持占位符，且不会显示。' }
  }
};

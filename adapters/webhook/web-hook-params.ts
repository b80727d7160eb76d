// The parameters of the resource `web_hook` and of its action, with the names, titles and defaults of the original
// interface.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of rules
import type { ParamTable } from '../../lib/adapter.ts';

/** The request methods. GET and DELETE have no body. */
const METHODS = ['POST', 'PUT', 'GET', 'DELETE'] as const;

/** Parameters of the resource `web_hook`: first the documented ones, then those of its connections. */
export const WEB_HOOK_PARAMS: ParamTable = {
  url: {
    order: 1,
    type: 'string',
    format: 'url',
    required: true,
    title: { en: 'Request URL', zh: '请求 URL' },
    description: {
      en: 'URL of the requests, without user name, password and placeholders.',
      zh: '请求发送到的 URL，其中不能包含用户名、密码和占位符。'
    }
  },
  method: {
    order: 2,
    type: 'string',
    enum: METHODS,
    default: 'POST',
    title: { en: 'Request Method', zh: '请求方法' },
    description: {
      en: 'HTTP method. Requests with GET and DELETE have no body.',
      zh: 'HTTP 请求方法。GET 和 DELETE 请求不带请求体。'
    }
  },
  headers: {
    order: 3,
    type: 'object',
    schema: {},
    default: {},
    isSecret: true,
    title: { en: 'Request Headers', zh: '请求头' },
    description: {
      en: 'Additional headers of each request. Their values are never shown.',
      zh: '每个请求附加的 HTTP 请求头，其值不会显示。'
    }
  },
  connect_timeout: {
    order: 4,
    type: 'number',
    range: [0.1, 3600],
    default: 5,
    title: { en: 'Connect Timeout', zh: '连接超时时间' },
    description: {
      en: 'Seconds within which a connection must be established.',
      zh: '建立连接的超时时间，单位为秒。'
    }
  },
  request_timeout: {
    order: 5,
    type: 'number',
    range: [0.1, 3600],
    default: 5,
    title: { en: 'Request Timeout', zh: '请求超时时间' },
    description: {
      en: 'Seconds within which the answer to a request must begin, including the time for connecting. Later the request is sent again.',
      zh: '从发起请求（包括建立连接）到开始收到响应的超时时间，单位为秒。超时的请求会重新发送。'
    }
  },
  pool_size: {
    order: 6,
    type: 'number',
    range: [1, 1000],
    default: 32,
    title: { en: 'Pool Size', zh: '连接池大小' },
    description: {
      en: 'Maximum number of connections to the server. Requests of one rule are sent one after the other.',
      zh: '到服务器的最大连接数。同一条规则的请求按顺序逐个发送。'
    }
  },
  content_type: {
    order: 7,
    type: 'string',
    enum: ['application/json', 'text/plain', 'text/plain;charset=UTF-8'],
    default: 'application/json',
    title: { en: 'Content-Type', zh: 'Content-Type' },
    description: {
      en: 'Type of the body. A header "content-type" takes precedence, and can have any other value.',
      zh: '请求体的类型。如果请求头中设置了 content-type，则以请求头为准，且可以使用其他任意值。'
    }
  },
  ca: {
    order: 8,
    type: 'string',
    input: 'textarea',
    title: { en: 'CA Certificates', zh: 'CA 证书' },
    description: {
      en: 'Certificate authorities for https, as PEM text. Default: those of Node.',
      zh: '用于 https 的 CA 证书，PEM 格式文本。默认使用 Node 自带的 CA 证书。'
    }
  },
  cert: {
    order: 9,
    type: 'string',
    input: 'textarea',
    title: { en: 'Client Certificate', zh: '客户端证书' },
    description: {
      en: 'Certificate for servers that ask for one, as PEM text.',
      zh: '服务器要求客户端证书时使用的证书，PEM 格式文本。'
    }
  },
  key: {
    order: 10,
    type: 'string',
    input: 'textarea',
    isSecret: true,
    title: { en: 'Client Key', zh: '客户端私钥' },
    description: { en: 'Private key of the certificate, as PEM text.', zh: '客户端证书的私钥，PEM 格式文本。' }
  },
  passphrase: {
    order: 11,
    type: 'string',
    input: 'password',
    isSecret: true,
    title: { en: 'Passphrase', zh: '私钥密码' },
    description: { en: 'Passphrase of an encrypted key.', zh: '加密私钥的密码。' }
  },
  servername: {
    order: 12,
    type: 'string',
    title: { en: 'Server Name', zh: '服务器名称' },
    description: {
      en: 'Name that the certificate of the server must have. Default: the host name of the URL.',
      zh: '服务器证书中必须包含的名称。默认为 URL 中的主机名。'
    }
  },
  fail_on_status: {
    order: 13,
    type: 'boolean',
    default: true,
    title: { en: 'Fail on Status', zh: '检查状态码' },
    description: {
      en: 'Requests that are not answered with a status from 200 to 299 have failed. They are sent again after a status of 500 and above, 408, 425 and 429, and dropped after others; the header Retry-After is observed. If it is false, each answer counts as success.',
      zh: '状态码不在 200 到 299 之间的请求视为失败。状态码为 500 及以上、408、425 或 429 时会重新发送（遵循 Retry-After 响应头），其他状态码则丢弃该请求。设为 false 时，收到任何响应都视为成功。'
    }
  },
  persisted: {
    order: 14,
    type: 'boolean',
    default: false,
    title: { en: 'Persisted', zh: '持久化' },
    description: {
      en: 'Keep queued requests in the store of the broker, so that they are sent after a restart.',
      zh: '将等待发送的请求保存在 broker 的存储中，重启后继续发送。'
    }
  },
  public_only: {
    order: 15,
    type: 'boolean',
    default: false,
    title: { en: 'Public Addresses Only', zh: '仅限公网地址' },
    description: {
      en: 'Do not connect to addresses of this machine and of private networks.',
      zh: '不连接本机地址和私有网络地址。'
    }
  }
};

/** Parameters of the action `data_to_webserver`. */
export const DATA_TO_WEBSERVER_PARAMS: ParamTable = {
  payload_tmpl: {
    order: 1,
    type: 'string',
    input: 'textarea',
    default: '',
    title: { en: 'Payload Template', zh: '消息内容模板' },
    description: {
      en: 'Body of the request, with placeholders such as ${payload.x} for values of the output. Empty: the whole output as JSON.',
      zh: '请求体模板，支持使用 ${payload.x} 形式的占位符引用规则输出的值。为空时发送规则的全部输出（JSON 格式）。'
    }
  },
  path: {
    order: 2,
    type: 'string',
    default: '',
    title: { en: 'Path', zh: '路径' },
    description: {
      en: 'Path, and possibly a query, that is appended to the URL, with placeholders such as ${clientid}. Values are percent-encoded; in the path, a slash stays.',
      zh: '追加到 URL 后的路径，可包含查询参数，支持 ${clientid} 形式的占位符。占位符的值会进行百分号编码，路径中的斜杠保持不变。'
    }
  },
  method: {
    order: 3,
    type: 'string',
    enum: METHODS,
    title: { en: 'Request Method', zh: '请求方法' },
    description: { en: 'HTTP method. Default: that of the resource.', zh: 'HTTP 请求方法。默认使用资源中的请求方法。' }
  },
  headers: {
    order: 4,
    type: 'object',
    schema: {},
    default: {},
    isSecret: true,
    title: { en: 'Request Headers', zh: '请求头' },
    description: {
      en: 'Headers in addition to those of the resource, with placeholders in their values. Their values are never shown.',
      zh: '除资源中的请求头之外附加的请求头，其值支持占位符，且不会显示。'
    }
  }
};

import type { FieldTable, Params } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import { checkTls, type OutgoingTls } from './tls.ts';

/** Parameters of TLS of a resource, by the names of `OutgoingTls`. */
export const TLS_PARAMS = {
  ca: {
    type: 'string',
    input: 'textarea',
    title: 'CA Certificates',
    about: 'Certificate authorities for https, as PEM text. Default: those of Node.',
    zh: { title: 'CA 证书', about: '用于 https 的 CA 证书，PEM 格式文本。默认使用 Node 自带的 CA 证书。' }
  },
  cert: {
    type: 'string',
    input: 'textarea',
    title: 'Client Certificate',
    about: 'Certificate for servers that ask for one, as PEM text.',
    zh: { title: '客户端证书', about: '服务器要求客户端证书时使用的证书，PEM 格式文本。' }
  },
  key: {
    type: 'string',
    input: 'textarea',
    isSecret: true,
    title: 'Client Key',
    about: 'Private key of the certificate, as PEM text.',
    zh: { title: '客户端私钥', about: '客户端证书的私钥，PEM 格式文本。' }
  },
  passphrase: {
    type: 'string',
    input: 'password',
    isSecret: true,
    title: 'Passphrase',
    about: 'Passphrase of an encrypted key.',
    zh: { title: '私钥密码', about: '加密私钥的密码。' }
  },
  servername: {
    type: 'string',
    title: 'Server Name',
    about: 'Name that the certificate of the server must have. Default: the host name.',
    zh: { title: '服务器名称', about: '服务器证书中必须包含的名称。默认为主机名。' }
  }
} satisfies FieldTable;

/**
 * Read parameters of TLS. Forms send empty strings for empty fields.
 * @param names the names of the parameters, by those of `OutgoingTls`
 * @param place for messages: `web_hook`
 * @throws InvalidInput PARAM_INVALID, without the value
 */
export function readTlsParams(
  given: Params,
  names: Readonly<Partial<Record<keyof OutgoingTls, string>>>,
  place: string
): OutgoingTls {
  const values = Object.entries(names).map(([option, name]) => [option, given[name]] as const);
  const tls: OutgoingTls = Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== ''));
  try {
    checkTls(tls, place);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const name = names[error.field.slice(place.length + 1) as keyof OutgoingTls] ?? error.field;
    throw new InvalidInput('PARAM_INVALID', name, error.expected, undefined, error.message);
  }
  return tls;
}

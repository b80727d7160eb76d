import { connect, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { BrokerError } from '../../../lib/index.ts';
import { EXTENDED_RESPONSE, encoded, firstMessage, readResponse } from './ber.ts';
import { CheckedStream } from './checked-stream.ts';
import type { LdapSettings } from './options.ts';

/** A request with the message id 1 for StartTLS [RFC 4511 section 4.14]. */
const START_TLS = encoded(
  0x30,
  Buffer.from([2, 1, 1]),
  encoded(0x77, encoded(0x80, Buffer.from('1.3.6.1.4.1.1466.20037')))
);

/**
 * Open a connection to an LDAP server, with TLS if the settings say so.
 * @param signal closes the connection while it is being opened; its reason is thrown
 * @throws BrokerError LDAP_FAILED
 */
export async function dial(settings: LdapSettings, signal: AbortSignal): Promise<CheckedStream> {
  const { url, startTls } = settings;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const isSecure = url.protocol === 'ldaps:';
  const target = { host, port: Number(url.port || (isSecure ? 636 : 389)) };
  let socket: Socket | undefined;
  try {
    if (isSecure) {
      socket = tlsConnect({ ...target, ...tlsOptions(settings, host) });
      await opened(socket, 'secureConnect', signal);
    } else {
      socket = connect(target);
      await opened(socket, 'connect', signal);
      if (startTls) {
        await requestTls(socket, signal);
        socket = tlsConnect({ host, ...tlsOptions(settings, host), socket });
        await opened(socket, 'secureConnect', signal);
      }
    }
    return new CheckedStream(socket);
  } catch (error) {
    socket?.on('error', () => {});
    socket?.destroy();
    if (signal.aborted) throw signal.reason;
    const { message, code } = error as NodeJS.ErrnoException;
    const why = message === '' ? code : message; // if all of several addresses fail, the error has no message
    throw new BrokerError('LDAP_FAILED', `cannot connect to ${url.host}: ${why}`, { cause: error });
  }
}

function tlsOptions({ ca, cert, key, passphrase, servername }: LdapSettings, host: string): ConnectionOptions {
  const name = servername ?? (isIP(host) === 0 ? host : undefined);
  const options = { ca, cert, key, passphrase, servername: name, rejectUnauthorized: true };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Request TLS. Nothing may follow the answer before TLS begins, because it would not be protected. */
async function requestTls(socket: Socket, signal: AbortSignal): Promise<void> {
  let bytes: Buffer = Buffer.alloc(0);
  let message: Buffer | undefined;
  const read = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    try {
      message = firstMessage(bytes);
      if (message !== undefined) socket.pause().emit('answered');
    } catch (error) {
      socket.destroy(error as Error);
    }
  };
  socket.on('data', read);
  socket.write(START_TLS);
  await opened(socket, 'answered', signal);
  socket.off('data', read);
  const response = readResponse(message as Buffer);
  if (response?.operation !== EXTENDED_RESPONSE || bytes.length !== message?.length)
    throw new Error('the answer to StartTLS is not valid');
  if (response.result !== 0) throw new Error(`the server refuses StartTLS (result code ${response.result})`);
}

/** Wait for an event of a socket. */
function opened(socket: Socket | TLSSocket, event: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const settle = (error?: unknown) => {
      socket.off(event, done).off('error', settle).off('close', closed);
      signal.removeEventListener('abort', abort);
      if (error === undefined) resolve();
      else reject(error);
    };
    const done = () => settle();
    const closed = () => settle(new Error('the server has closed the connection'));
    const abort = () => settle(signal.reason);
    socket.on(event, done).on('error', settle).on('close', closed);
    signal.addEventListener('abort', abort, { once: true });
  });
}

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import mqtt from 'mqtt';
import { WebSocket } from 'ws';
import { editPasswordFile } from '../../adapters/auth/password-file/index.ts';
import { CommandProcess } from '../cli/process.ts';
import { makeCertificates } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';

const deploy = join(import.meta.dirname, '../../examples/deploy');
const APP = 'ops:a secret of the test';
/** Another address of this machine, from which the clients connect. */
const CLIENT = '127.0.0.2';

const NGINX = '/usr/sbin/nginx';
const hasStream = existsSync('/usr/lib/nginx/modules/ngx_stream_module.so');
const skip =
  spawnSync(NGINX, ['-v']).status === 0 && hasStream ? false : 'nginx with its stream module is not installed';

describe('The configuration of nginx', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-nginx-'));
  const certificates = makeCertificates();
  const ca = readFileSync(certificates.ca.certFile);
  let broker: CommandProcess;
  let nginx: ChildProcess;
  let https: number;
  let mqtts: number;

  before(async () => {
    await editPasswordFile(join(folder, 'users'), 'door-1', 'a secret');
    const [proxied, ws] = await freePorts(2);
    const config = readFileSync(join(deploy, 'behind-nginx.json'), 'utf8')
      .replace('/etc/embermq/users', join(folder, 'users'))
      .replace('1884', `${proxied}`)
      .replace('8083', `${ws}`);
    writeFileSync(join(folder, 'embermq.json'), config);
    const args = ['--http-port', '0', '--dashboard-port', '0', '--log-level', 'info'];
    const data = ['--config', join(folder, 'embermq.json'), '--data-dir', join(folder, 'data')];
    broker = new CommandProcess(['serve', ...data, ...args], { EMBERMQ_APP: APP });
    const { http, dashboard } = await broker.ready();

    [https, mqtts] = await freePorts(2);
    const ports = { ':8083': `:${ws}`, ':8081': `:${http}`, ':18083': `:${dashboard}`, ':1884': `:${proxied}` };
    let text = readFileSync(join(deploy, 'nginx.conf'), 'utf8')
      .replaceAll('listen 443', `listen 127.0.0.1:${https}`)
      .replaceAll('listen 8883', `listen 127.0.0.1:${mqtts}`)
      .replaceAll('/etc/embermq/server.crt', certificates.server.certFile)
      .replaceAll('/etc/embermq/server.key', certificates.server.keyFile)
      .replace('worker_processes auto', 'worker_processes 1')
      .replace('http {', `http {\naccess_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder};`);
    for (const [from, to] of Object.entries(ports)) text = text.replaceAll(new RegExp(`${from}\\b`, 'g'), to);
    writeFileSync(join(folder, 'nginx.conf'), text);
    const flags = [
      '-c',
      join(folder, 'nginx.conf'),
      '-g',
      `daemon off; pid ${join(folder, 'pid')}; error_log stderr info;`
    ];
    const tested = spawnSync(NGINX, ['-t', ...flags], { encoding: 'utf8' });
    assert.equal(tested.status, 0, tested.stderr);
    nginx = spawn(NGINX, flags, { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    for await (const chunk of nginx.stderr!) if (/start worker process /.test((log += chunk))) break;
  });

  after(async () => {
    const ended = [once(nginx, 'exit'), broker.end()];
    nginx.kill('SIGTERM');
    broker.child.kill('SIGTERM');
    await Promise.all(ended);
    certificates[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });

  /** Sends a request to a host of nginx, with a header that names another client. */
  async function ask(host: string, path: string, options: { login?: string; body?: string } = {}) {
    const headers = {
      host: `${host}:${https}`,
      'x-forwarded-for': '192.0.2.66',
      ...(options.login !== undefined && { authorization: `Basic ${btoa(options.login)}` }),
      ...(options.body !== undefined && { 'content-type': 'application/json', origin: `https://${host}:${https}` })
    };
    const method = options.body === undefined ? 'GET' : 'POST';
    const place = { host: '127.0.0.1', port: https, localAddress: CLIENT, ca, servername: 'localhost' };
    const sent = request({ ...place, path, method, headers });
    sent.end(options.body);
    const [answer] = await once(sent, 'response');
    const text = (await answer.toArray()).join('') as string;
    return { status: answer.statusCode as number, text, cookies: answer.headers['set-cookie'] as string[] | undefined };
  }

  const login = { username: 'door-1', password: 'a secret', reconnectPeriod: 0, ca };

  it('passes MQTT over TLS on, with the address of the client', async () => {
    const open = () =>
      connectTls({ host: '127.0.0.1', port: mqtts, ca, servername: 'localhost', localAddress: CLIENT } as never);
    const client = new mqtt.MqttClient(open, { ...login, clientId: 'tls-1' });
    await new Promise((resolve) => client.once('connect', resolve));
    const { text } = await ask('broker.example', '/api/v4/clients/tls-1', { login: APP });
    assert.equal(JSON.parse(text).data[0].ip_address, CLIENT);
    await client.endAsync();
  });

  it('passes WebSocket on, with the address of the client, and refuses clients without a password', async () => {
    const url = `wss://localhost:${https}/mqtt`;
    const headers = { 'x-forwarded-for': '192.0.2.66' };
    const createWebsocket = (address: string, protocols: string[]) =>
      new WebSocket(address, protocols, { ca, headers, localAddress: CLIENT });
    const client = await mqtt.connectAsync(url, { ...login, clientId: 'ws-1', createWebsocket } as never);
    const { text } = await ask('broker.example', '/api/v4/clients/ws-1', { login: APP });
    assert.equal(JSON.parse(text).data[0].ip_address, CLIENT);
    await client.endAsync();
    await assert.rejects(mqtt.connectAsync(url, { ca, reconnectPeriod: 0 }, false), /Not authorized/);
  });

  it('passes REST and the console on, with the address of the client', async () => {
    const [, password] = readFileSync(join(folder, 'data/first-user'), 'utf8').split('\n')[0].split(':');
    assert.equal((await ask('console.example', '/session')).status, 401);
    const body = JSON.stringify({ id: 'admin', password });
    const { status, cookies } = await ask('console.example', '/login', { body });
    assert.equal(status, 200);
    // nginx ends TLS and sends no X-Forwarded-Proto: the origin of the page says that the browser uses TLS
    assert.match(cookies?.[0] ?? '', /^__Secure-.*; HttpOnly; SameSite=Strict; Secure$/);
    const { text } = await ask('broker.example', '/api/v4/x/audit', { login: APP });
    const [{ operation, address }] = JSON.parse(text).data;
    assert.deepEqual([operation, address], ['login', CLIENT]);
  });

  it('does not pass on what needs no credentials', async () => {
    for (const path of ['/metrics', '/readyz', '/api/v3/clients'])
      assert.equal((await ask('broker.example', path)).status, 404, path);
    assert.equal((await ask('broker.example', '/api/v4/clients')).status, 401);
  });
});

// The program of the tutorial "Live data in an Express app": the app issues tokens, browsers and devices connect to its port with them.

// #region login
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { SignJWT } from 'jose';

const secret = process.env.TOKEN_SECRET ?? 'a secret of at least 32 bytes ..';
const key = new TextEncoder().encode(secret);

/** A token for an hour, with the topics that its holder may use. */
function tokenFor(user: string): Promise<string> {
  return new SignJWT({ acl: { pub: [`users/${user}/say`], sub: [`users/${user}/#`, 'news'] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(user)
    .setAudience('mqtt')
    .setExpirationTime('1h')
    .sign(key);
}

const app = express();
app.use(express.json());
app.post('/login', async (request, response) => {
  const { user, password } = request.body; // check them as your app does
  if (user !== 'ann' || password !== 'a password') return void response.sendStatus(401);
  response.json({ token: await tokenFor(user) });
});

// #endregion

// #region broker
import { createBroker } from 'embermq';
import { jwt } from 'embermq/auth/jwt';
import { levelStore } from 'embermq/level';

const broker = createBroker({
  store: levelStore('data-of-tutorial'), // sessions and retained messages survive a restart
  auth: [jwt({ secret, audience: 'mqtt', usernameClaim: 'sub' })]
});
// #endregion

// #region publish
app.post('/news', async (request, response) => {
  await broker.publish('news', JSON.stringify(request.body), { qos: 1, retain: true });
  response.sendStatus(204);
});
broker.subscribe('users/+/say', ({ topic, payload }) => console.log(`the app hears ${topic}: ${payload}`));

// #endregion

// #region listen
import { attachWebSocket } from 'embermq/net';

const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1');
attachWebSocket(broker, server, { path: '/mqtt' });
await once(server, 'listening');
await broker.start();
const { port } = server.address() as AddressInfo;

// #endregion

// #region client
import mqtt from 'mqtt';

const post = (path: string, body: object) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body)
  });
const { token } = (await (await post('/login', { user: 'ann', password: 'a password' })).json()) as { token: string };
const client = await mqtt.connectAsync(`ws://127.0.0.1:${port}/mqtt`, {
  protocolVersion: 5,
  username: 'ann',
  password: token
});
const news = new Promise<string>((resolve) =>
  client.on('message', (topic, payload) => resolve(`${topic}: ${payload}`))
);
await client.subscribeAsync('news');
await post('/news', { text: 'the market is open' });
console.log(`ann reads ${await news}`);
await client.publishAsync('users/ann/say', 'thanks', { qos: 1 });
await client.publishAsync('users/bob/say', 'as bob', { qos: 1 }).catch(({ message }) => console.log(message));
// #endregion

// #region stop
await client.endAsync();
server.close();
server.closeAllConnections();
await broker.stop(); // waits for commits; then the process may end
// #endregion
// prints:
// ann reads news: {"text":"the market is open"}
// the app hears users/ann/say: thanks
// Publish error: Not authorized

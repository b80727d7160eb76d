import type { Broker } from 'embermq';
import express, { type RequestHandler, Router } from 'express';
import type { Greenhouses } from './greenhouses.ts';
import type { Login } from './login.ts';
import * as topics from './topics.ts';

/** The routes of the app itself: devices log in, operators read the greenhouses and open their vents. */
export function routes(broker: Broker, greenhouses: Greenhouses, login: Login): Router {
  const router = Router();

  router.post('/login', express.json(), async (request, response) => {
    const { device, key } = (request.body ?? {}) as Record<string, unknown>;
    const token = await login.tokenFor(String(device), String(key));
    if (token === undefined) response.status(401).json({ error: 'unknown device or wrong key' });
    else response.json({ token });
  });

  router.use('/greenhouses', operatorsOnly(broker));

  router.get('/greenhouses', (_request, response) => {
    response.json(greenhouses.list());
  });

  router.get('/greenhouses/:name', (request, response) => {
    const found = greenhouses.get(request.params.name);
    if (found === undefined) response.status(404).json({ error: 'no such greenhouse' });
    else response.json(found);
  });

  router.post('/greenhouses/:name/vents', express.json(), async (request, response) => {
    const { name } = request.params;
    const isOpen = (request.body as { isOpen?: unknown } | undefined)?.isOpen;
    if (typeof isOpen !== 'boolean') {
      response.status(400).json({ error: 'isOpen must be true or false' });
    } else if (greenhouses.get(name) === undefined) {
      response.status(404).json({ error: 'no such greenhouse' });
    } else {
      await broker.publish({ topic: topics.command(name), payload: JSON.stringify({ isOpen }), qos: 1 });
      response.status(202).json({ isOpen });
    }
  });

  return router;
}

/** Admit callers with an id and a secret of the management interface (HTTP Basic). */
function operatorsOnly(broker: Broker): RequestHandler {
  return async (request, response, next) => {
    const basic = /^Basic (.+)$/i.exec(request.get('authorization') ?? '')?.[1] ?? '';
    const [id, ...secret] = Buffer.from(basic, 'base64').toString().split(':');
    const operator = await broker.applications.verify(id, secret.join(':'), request.ip);
    if (operator !== undefined) next();
    else response.status(401).set('WWW-Authenticate', 'Basic').json({ error: 'id and secret are required' });
  };
}

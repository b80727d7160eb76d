import type { Broker } from '../../../lib/index.ts';
import { log, type Shell } from '../command.ts';
import type { Opened } from './listeners.ts';

/** Log the lines of the sink `log`, and the warnings of sources and sinks. */
export function logStreams(broker: Broker, shell: Shell): void {
  broker.on('streams.logged', ({ text }) => log(shell, text));
  broker.on('streams.warned', ({ text }) => log(shell, `warning: ${text}`));
}

/** Close the port of stream rules while their service is stopped, and open it again with it. */
export function followStreams(broker: Broker, opened: readonly Opened[], shell: Shell): void {
  const listeners = opened.filter(({ plan }) => plan.http === 'rules').map(({ listening }) => listening);
  if (listeners.length === 0) return;
  // sequential: a service that is restarted immediately must not find its port in use
  let last: Promise<unknown> = Promise.resolve();
  const follow = (change: (listener: Opened['listening']) => Promise<void>, done: string) => {
    last = last
      .then(() => (broker.state === 'connected' ? Promise.all(listeners.map(change)) : undefined))
      .then(
        () => log(shell, done),
        (error: Error) => log(shell, `warning: the port of stream rules: ${error.message}`)
      );
  };
  broker.on('streams.stopped', () =>
    follow(
      (listener) => listener.close(),
      'the stream service has stopped; its port is closed until it is started again'
    )
  );
  broker.on('streams.started', () => follow((listener) => listener.open(), 'the stream service runs again'));
}

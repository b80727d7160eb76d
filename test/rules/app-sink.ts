import type { SinkItem, SinkType } from '../../lib/adapter.ts';

/** A sink of an app that cannot be reached until `answer` is set. */
export function unreachableSink(): AppSink {
  const sink = new AppSink();
  sink.answer = () => {
    throw new Error('down');
  };
  return sink;
}

/** A sink of an app. */
export class AppSink implements SinkType {
  readonly name: string = 'app_sink';
  readonly about = 'For tests.';
  readonly properties: SinkType['properties'] = {
    topic: { type: 'string', required: true, isTemplate: true, about: 'Topic.' },
    token: { type: 'string', isSecret: true, about: 'Token.' },
    level: { type: 'number', default: 3, range: [0, 5], about: 'Level.' }
  };
  readonly sent: string[] = [];
  readonly tokens: unknown[] = [];
  opened = 0;
  closed = 0;
  answer: (item: SinkItem) => void | Promise<void> = () => undefined;

  async open({ properties }: Parameters<SinkType['open']>[0]) {
    this.opened++;
    this.tokens.push(properties.token);
    return {
      send: async (item: SinkItem) => {
        await this.answer(item);
        this.sent.push(`${item.property('topic')}: ${item.bytes}`);
      },
      close: () => void this.closed++
    };
  }
}

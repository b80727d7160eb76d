import type { ActionType, Resource, ResourceEntry, ResourceType, RuleOutput } from '../../lib/rules/types.ts';
import { createTestBroker, type TestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';

/** A resource type whose target is this object. */
export class FakeTarget {
  /** The reason why the target cannot be reached. */
  fault: Error | undefined = undefined;
  /** Called for each delivery; an error fails the delivery. */
  onSend: (entries: readonly ResourceEntry[]) => unknown = () => undefined;
  readonly sent: string[] = [];
  readonly ids: string[] = [];
  checks = 0;
  closed = 0;

  /**
   * @param isPersisted whether queued entries are persisted
   * @param limits further options of the outbox
   */
  type(isPersisted = false, limits: Resource['outbox'] = {}): ResourceType {
    return {
      name: 'fake',
      title: { en: 'Fake', zh: '假的' },
      description: { en: 'For tests', zh: '用于测试' },
      params: {
        url: {
          type: 'string',
          required: true,
          title: { en: 'URL', zh: '地址' },
          description: { en: 'URL', zh: '地址' }
        },
        token: {
          type: 'string',
          isSecret: true,
          title: { en: 'Token', zh: '令牌' },
          description: { en: 'Token', zh: '令牌' }
        }
      },
      actions: [
        {
          name: 'to_fake',
          types: ['fake'],
          title: { en: 'To the target', zh: '到目标' },
          description: { en: 'For tests', zh: '用于测试' },
          create: () => ({ prepare: (output) => JSON.stringify(output) })
        }
      ],
      make: () => ({
        outbox: { isPersisted, ...limits },
        check: () => {
          this.checks++;
          if (this.fault !== undefined) throw this.fault;
        },
        send: async (entries) => {
          await this.onSend(entries);
          for (const { id, content } of entries) {
            this.ids.push(id);
            this.sent.push(String(content));
          }
        },
        close: () => {
          this.closed++;
        }
      })
    };
  }
}

/** A resource of the type of `FakeTarget`. */
export const RESOURCE = { id: 'r', type: 'fake', config: { url: 'http://x' } };

/** An action that sends to it. */
export const TO_FAKE = { name: 'to_fake', params: { $resource: 'r' } };

/** A title for tests. */
export const TEXT = { en: 'x', zh: 'x' };

/** An action type of the app. */
export function actionKind(name: string, run: (output: unknown) => unknown, close?: () => unknown): ActionType {
  return {
    name,
    title: TEXT,
    description: TEXT,
    create: () => ({ run, ...(close && { close: close as () => void }) })
  };
}

/** A function of the app for statements. */
export const TWICE = {
  name: 'twice',
  family: 'app',
  params: ['number'],
  returns: 'number',
  about: 'Twice',
  run: (n: number) => n * 2
} as const;

/** Read a number of outputs. */
export async function take(outputs: AsyncIterator<RuleOutput>, count: number): Promise<unknown[]> {
  const taken: unknown[] = [];
  while (taken.length < count) {
    const { value, done } = await outputs.next();
    if (done === true) break;
    taken.push(value.output);
  }
  return taken;
}

/** Parameters of the action `republish`. */
export function republish(topic: string, payload: string, params: object = {}) {
  return { name: 'republish', params: { target_topic: topic, target_qos: 0, payload_tmpl: payload, ...params } };
}

/** A broker whose handlers end with the test, and whose rules may fail. */
export async function ruleKit(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const kit = await createTestBroker({ leaks: 'ignore', ...options });
  kit.broker.on('error', () => undefined);
  return kit;
}

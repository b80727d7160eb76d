import type { TimeReading } from '../../base/time-reading.ts';
import type { Message } from '../../packets/message.ts';
import type { Group } from '../../routing/route.ts';
import type { Subscription } from '../../routing/subscription.ts';
import { cut } from '../cut-text.ts';

/** Number of examples of each group. */
const MAX_EXAMPLES = 5;
/** Minimum time between two examples of a group. */
const INTERVAL_MS = 100;
/** Maximum memory of all examples, in bytes, as estimated by `bytesOf`. */
const MAX_BYTES = 2_097_152;

/** A message of a share group, and the member that received it. Texts have at most 256 characters. */
interface ShareExample {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly topic: string;
  /** Client id of the publisher; '' for messages of the app. */
  readonly publisher: string;
  /** Client id of the member that was chosen; '' for a handler of the app. */
  readonly member: string;
}

/** The examples of a group, the latest first. */
interface KeptExamples {
  readonly examples: readonly ShareExample[];
  /** Estimated memory, with that of the group, which has its filter in full length and may have ended. */
  readonly bytes: number;
}

const NONE: readonly ShareExample[] = [];

/**
 * The last five messages of each share group with the member that was chosen, at most one in 100 ms. Beyond 2 MB, those of the group whose
 * last example is the oldest are removed.
 *
 * `Group.sampledAfterMs` is compared for each message, and everything else happens only for examples.
 */
export class ShareSamples {
  readonly #time: TimeReading;
  readonly #maxBytes: number;
  /** The groups by the time of their last example, the oldest first. */
  readonly #byGroup = new Map<Group, KeptExamples>();
  #bytes = 0;

  /** @param isOn false: no examples are kept */
  constructor(time: TimeReading, isOn: boolean, maxBytes = MAX_BYTES) {
    this.#time = time;
    this.#maxBytes = isOn ? maxBytes : 0;
  }

  /** The examples of a group, the latest first. */
  of(group: Group): readonly ShareExample[] {
    return this.#byGroup.get(group)?.examples ?? NONE;
  }

  /** Add an example, because one is due. */
  add(group: Group, { topic, clientId }: Message, { subscriber, filter }: Subscription): void {
    const { nowMs, wallMs } = this.#time;
    group.sampled(this.#maxBytes > 0 ? nowMs + INTERVAL_MS : Infinity);
    if (this.#maxBytes === 0) return;
    const member = cut(subscriber.receiver?.clientId ?? '');
    const before = this.of(group);
    this.#remove(group);
    const example = { at: wallMs, topic: cut(topic), publisher: cut(clientId), member };
    const examples = [example, ...before.slice(0, MAX_EXAMPLES - 1)];
    const bytes = filter.length + bytesOf(examples);
    this.#byGroup.set(group, { examples, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#byGroup.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#remove(oldest);
    }
  }

  #remove(group: Group): void {
    this.#bytes -= this.#byGroup.get(group)?.bytes ?? 0;
    this.#byGroup.delete(group);
  }
}

/** Estimate the memory of examples with their strings, which they may share with others. */
function bytesOf(examples: readonly ShareExample[]): number {
  let characters = 0;
  for (const { topic, publisher, member } of examples) characters += topic.length + publisher.length + member.length;
  return 200 + examples.length * 120 + characters;
}

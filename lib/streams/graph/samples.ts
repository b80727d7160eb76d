import { lastSampled, type Sample, type SamplePace, SampleRing } from '../../base/collections/samples.ts';
import { errorText } from '../../base/errors.ts';
import { hideInText } from '../../base/hidden-text.ts';
import { shortJson } from '../../sql/weight.ts';
import { jsonText } from '../formats/json-text.ts';
import type { StreamErrorSample, StreamRejectedSample, StreamRuleSamples } from '../types.ts';
import { type Tuple, topicOf } from '../values/tuple.ts';
import { plain, type StreamValueObject } from '../values/values.ts';
import type { OutputRows } from './sink-node.ts';

/** Maximum number of characters of an error message and of a topic. */
const MAX_TEXT = 256;

interface NodeSample extends Sample {
  readonly node: string;
  readonly topic?: string;
}

interface RejectedSample extends NodeSample {
  readonly reason: StreamRejectedSample['reason'];
}

interface ErrorSample extends NodeSample {
  readonly message: string;
}

/** The kinds of errors. Each is sampled separately, so that many of one kind hide none of another. */
type StreamErrorKind = 'payload_invalid' | 'function_failed' | 'target_refused';

/** The samples of a rule. A caller tests `isOpen` of a ring before it calls the method that fills it. */
export class StreamSampler {
  readonly inputs: SampleRing<NodeSample>;
  readonly outputs: SampleRing;
  readonly #errors: Readonly<Record<StreamErrorKind, SampleRing<ErrorSample>>>;
  readonly rejected: SampleRing<RejectedSample>;
  readonly #pace: SamplePace;
  /** Called with each sample of an error. */
  readonly #errorAdded: (kind: StreamErrorKind, sample: StreamErrorSample) => void;

  constructor(pace: SamplePace, errorAdded: (kind: StreamErrorKind, sample: StreamErrorSample) => void) {
    this.#pace = pace;
    this.#errorAdded = errorAdded;
    this.inputs = new SampleRing(pace);
    this.outputs = new SampleRing(pace);
    this.#errors = {
      payload_invalid: new SampleRing(pace),
      function_failed: new SampleRing(pace),
      target_refused: new SampleRing(pace)
    };
    this.rejected = new SampleRing(pace);
  }

  addInput(node: string, values: StreamValueObject): void {
    this.inputs.add({ ...this.#sample(() => values), node });
  }

  addOutput(rows: OutputRows): void {
    this.outputs.add(this.#sample(() => rows));
  }

  /** @param values returns the values that the condition reads */
  addRejected(
    node: string,
    reason: RejectedSample['reason'],
    tuple: Tuple,
    values: (tuple: Tuple) => StreamValueObject
  ): void {
    this.rejected.add({ ...this.#sample(() => plain(values(tuple))), node, reason, ...named(topicOf(tuple)) });
  }

  /** Add an error, if one is due. @param topic returns the topic of the message, if it has one */
  addError(node: string, error: unknown, topic: () => string | undefined): void {
    const kind = kindOf(node);
    const ring = this.#errors[kind];
    if (!ring.isOpen) return;
    const text = hideInText(errorText(error)).slice(0, MAX_TEXT);
    const message = Buffer.from(text).toString(); // a copy, so that it does not keep a longer text in memory
    const sample = { at: this.#pace.now(), node, message, ...named(topic()) };
    ring.add({ ...sample, json: '', isCut: false });
    this.#errorAdded(kind, sample);
  }

  /** Discard the samples. */
  clear(): void {
    for (const ring of this.#rings) ring.clear();
  }

  /** Time of the last sample, in milliseconds since 1970; 0: there is none. */
  get sampledAt(): number {
    return lastSampled(this.#rings);
  }

  get #rings(): readonly Pick<SampleRing, 'samples' | 'clear'>[] {
    return [this.inputs, this.outputs, this.rejected, ...Object.values(this.#errors)];
  }

  get samples(): StreamRuleSamples {
    const { inputs, outputs, rejected } = this;
    const errors = Object.values(this.#errors).flatMap(({ samples }) => samples);
    return {
      inputs: inputs.samples.map(({ at, node, json, isCut }) => ({ at, node, values: JSON.parse(json), isCut })),
      outputs: outputs.samples.map(({ at, json, isCut }) => ({ at, rows: JSON.parse(json), isCut })),
      errors: errors
        .sort((a, b) => a.at - b.at)
        .map(({ at, node, message, topic }) => ({ at, node, message, ...(topic !== undefined && { topic }) })),
      rejected: rejected.samples.map(({ json, ...sample }) => ({ ...sample, values: JSON.parse(json) }))
    };
  }

  /** @param make returns the value; what it throws is not an error of the rule */
  #sample(make: () => unknown): Sample {
    const at = this.#pace.now();
    try {
      return { at, ...shortJson(make(), this.#pace.most, jsonText) };
    } catch {
      return { at, json: '{}', isCut: true };
    }
  }
}

/** The samples of a rule that has not run. */
export const NO_SAMPLES: StreamRuleSamples = { inputs: [], outputs: [], errors: [], rejected: [] };

/** The topic of a sample as a copy, which does not keep a longer string in memory. */
function named(topic: string | undefined): { readonly topic?: string } {
  if (topic === undefined) return {};
  return { topic: Buffer.from(topic.slice(0, MAX_TEXT), 'utf16le').toString('utf16le') };
}

/** @param node name of the node of the graph in which an error occurred */
function kindOf(node: string): StreamErrorKind {
  if (node.startsWith('sink')) return 'target_refused';
  return node.startsWith('source') ? 'payload_invalid' : 'function_failed';
}

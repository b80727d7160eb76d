import { type Sample, type SamplePace, SampleRing } from '../../base/collections/samples.ts';
import { errorText } from '../../base/errors.ts';
import { hideInText } from '../../base/hidden-text.ts';
import { shortJson } from '../../sql/weight.ts';
import { jsonText } from '../formats/json-text.ts';
import type { StreamRejectedSample, StreamRuleSamples } from '../types.ts';
import type { Tuple } from '../values/tuple.ts';
import { plain, type StreamValueObject } from '../values/values.ts';
import type { OutputRows } from './sink-node.ts';

/** Maximum number of characters of an error message. */
const MAX_TEXT = 256;

interface NodeSample extends Sample {
  readonly node: string;
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
  readonly #errorAdded: (kind: StreamErrorKind, node: string, message: string) => void;

  constructor(pace: SamplePace, errorAdded: (kind: StreamErrorKind, node: string, message: string) => void) {
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
    this.rejected.add({ ...this.#sample(() => plain(values(tuple))), node, reason });
  }

  /** Add an error, if one is due. */
  addError(node: string, error: unknown): void {
    const kind = kindOf(node);
    const ring = this.#errors[kind];
    if (!ring.isOpen) return;
    const text = hideInText(errorText(error)).slice(0, MAX_TEXT);
    const message = Buffer.from(text).toString(); // a copy, so that it does not keep a longer text in memory
    ring.add({ at: this.#pace.now(), json: '', isCut: false, node, message });
    this.#errorAdded(kind, node, message);
  }

  /** Discard the samples. */
  clear(): void {
    for (const ring of [this.inputs, this.outputs, this.rejected, ...Object.values(this.#errors)]) ring.clear();
  }

  get samples(): StreamRuleSamples {
    const { inputs, outputs, rejected } = this;
    const errors = Object.values(this.#errors).flatMap(({ samples }) => samples);
    return {
      inputs: inputs.samples.map(({ at, node, json, isCut }) => ({ at, node, values: JSON.parse(json), isCut })),
      outputs: outputs.samples.map(({ at, json, isCut }) => ({ at, rows: JSON.parse(json), isCut })),
      errors: errors.sort((a, b) => a.at - b.at).map(({ at, node, message }) => ({ at, node, message })),
      rejected: rejected.samples.map(({ at, node, reason, json, isCut }) => ({
        ...{ at, node, reason, isCut },
        values: JSON.parse(json)
      }))
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

/** @param node name of the node of the graph in which an error occurred */
function kindOf(node: string): StreamErrorKind {
  if (node.startsWith('sink')) return 'target_refused';
  return node.startsWith('source') ? 'payload_invalid' : 'function_failed';
}

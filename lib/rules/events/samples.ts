import { lastSampled, type Sample, type SamplePace, SampleRing } from '../../base/collections/samples.ts';
import { errorText } from '../../base/errors.ts';
import { hideInText } from '../../base/hidden-text.ts';
import type { Excluded } from '../../sql/compile-statement.ts';
import { decodeJson, encodeJson } from '../../sql/json.ts';
import type { EventColumns } from '../../sql/row.ts';
import type { Value, ValueObject } from '../../sql/values.ts';
import { shortJson } from '../../sql/weight.ts';
import type { RuleErrorSample, RuleEvent, RuleSamples } from '../types.ts';
import { CatalogueEvent } from './event.ts';
import type { RuleEventName } from './event-name.ts';

/** Maximum number of characters of an error message and of a topic. */
const MAX_TEXT = 256;

const SUBJECT = ['topic', 'clientid'];

interface InputSample extends Sample {
  readonly event: RuleEventName;
}

interface RejectedSample extends InputSample {
  readonly topic: string | undefined;
  readonly clientId: string | undefined;
}

/** An error of a rule, without its columns. */
export type SampledError = Omit<RuleErrorSample, 'isCut' | 'columns'>;

interface ErrorSample extends Sample, Omit<SampledError, 'at'> {}

type SampledEvent = RuleEvent & EventColumns;

/** The samples of a rule. A caller tests `isOpen` of a ring before it calls the method that fills it. */
export class RuleSampler {
  readonly inputs: SampleRing<InputSample>;
  readonly outputs: SampleRing;
  /** Events that WHERE has excluded. */
  readonly rejected: SampleRing<RejectedSample>;
  /** Events for which the evaluation failed. */
  readonly failed: SampleRing<ErrorSample>;
  /** Failures of actions. */
  readonly actions: SampleRing<ErrorSample>;
  /** Events whose JSON could not be decoded. */
  readonly #undecoded: SampleRing<ErrorSample>;
  readonly #excluded: Excluded = { values: undefined };
  readonly #pace: SamplePace;
  /** Called with each sample of an error. */
  readonly #errorAdded: (error: SampledError) => void;

  constructor(pace: SamplePace, errorAdded: (error: SampledError) => void) {
    this.#pace = pace;
    this.#errorAdded = errorAdded;
    this.inputs = new SampleRing(pace);
    this.outputs = new SampleRing(pace);
    this.rejected = new SampleRing(pace);
    this.#undecoded = new SampleRing(pace);
    this.failed = new SampleRing(pace);
    this.actions = new SampleRing(pace);
  }

  /** The object that takes the values of WHERE; undefined if no sample is due. */
  get excluded(): Excluded | undefined {
    return this.rejected.isOpen ? this.#excluded : undefined;
  }

  addInput(event: SampledEvent): void {
    this.inputs.add({ ...this.#sample(() => this.#columnsOf(event)), event: event.name });
  }

  addOutput(output: Value): void {
    this.outputs.add(this.#sample(() => output));
  }

  /** Sample an event that WHERE has excluded, with the values in `excluded`. */
  addRejected(event: SampledEvent): void {
    const { values } = this.#excluded;
    this.#excluded.values = undefined;
    const sample = this.#sample(() => values ?? {});
    this.rejected.add({ ...sample, ...this.#subjectOf(event), event: event.name });
  }

  /**
   * Sample an event with a column that was not decoded, if the rule reads it; other rules share the event.
   * @param names the columns below which the rule reads values
   */
  sampleUndecoded(event: SampledEvent, names: readonly string[]): void {
    const { undecoded: name } = event;
    if (!this.#undecoded.isOpen || name === undefined || !names.includes(name)) return;
    const message = `${name} is not valid JSON, so all values below it are absent`;
    this.#add(this.#undecoded, this.#error(event, 'PAYLOAD_NOT_JSON', message));
  }

  addFailed(event: SampledEvent, error: unknown): void {
    this.#add(this.failed, this.#error(event, 'SQL_FAILED', error));
  }

  addAction(actionId: string, error: unknown, given: string | undefined): void {
    const sample = this.#sample(() => ({}));
    const topic = given === undefined ? undefined : shortText(given);
    this.#add(this.actions, { ...sample, code: 'ACTION_FAILED', message: messageOf(error), actionId, topic });
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
    const { inputs, outputs, rejected, failed, actions } = this;
    return [inputs, outputs, rejected, this.#undecoded, failed, actions];
  }

  get samples(): Omit<RuleSamples, 'excluded'> {
    const { inputs, outputs, rejected, failed, actions } = this;
    const errors = [this.#undecoded, failed, actions].flatMap(({ samples }) => samples);
    return {
      inputs: inputs.samples.map(({ json, ...sample }) => ({ ...sample, columns: objectIn(json) })),
      outputs: outputs.samples.map(({ json, ...sample }) => ({ ...sample, output: decodeJson(json) })),
      errors: errors
        .sort((a, b) => a.at - b.at)
        .map(({ json, ...sample }) => ({
          ...sample,
          ...(sample.actionId === undefined && { columns: objectIn(json) })
        })),
      rejected: rejected.samples.map(({ json, ...sample }) => ({ ...sample, columns: objectIn(json) }))
    };
  }

  #add(ring: SampleRing<ErrorSample>, sample: ErrorSample): void {
    ring.add(sample);
    this.#errorAdded(sample);
  }

  #error(event: SampledEvent, code: ErrorSample['code'], error: unknown): ErrorSample {
    const sample = this.#sample(() => this.#columnsOf(event));
    return { ...sample, code, message: messageOf(error), ...this.#subjectOf(event) };
  }

  /** @param make returns the value; what it throws is not an error of the rule */
  #sample(make: () => Value): Sample {
    const at = this.#pace.now();
    try {
      return { at, ...shortJson(make(), this.#pace.most, encodeJson) };
    } catch {
      return { at, json: '{}', isCut: true };
    }
  }

  #subjectOf(event: SampledEvent): { readonly topic: string | undefined; readonly clientId: string | undefined } {
    const { topic, clientid: clientId } = this.#read(event, SUBJECT);
    return {
      topic: typeof topic === 'string' ? shortText(topic) : undefined,
      clientId: typeof clientId === 'string' ? shortText(clientId) : undefined
    };
  }

  #columnsOf(event: SampledEvent): ValueObject {
    return this.#read(event, event.names);
  }

  #read(event: SampledEvent, names: readonly string[]): ValueObject {
    return event instanceof CatalogueEvent ? event.sampled(names, 2 * this.#pace.most) : event.columns();
  }
}

/** The samples of a rule without events. */
export const NO_SAMPLES: Omit<RuleSamples, 'excluded'> = { inputs: [], outputs: [], errors: [], rejected: [] };

function objectIn(json: string): ValueObject {
  return decodeJson(json) as ValueObject;
}

function messageOf(error: unknown): string {
  return shortText(hideInText(typeof error === 'string' ? error : errorText(error)));
}

/** A copy, so that it does not keep a longer text in memory. */
function shortText(text: string): string {
  return Buffer.from(text.slice(0, MAX_TEXT)).toString();
}

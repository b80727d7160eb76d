import { MOST_STRING } from './arithmetic.ts';
import { decodeJson } from './json.ts';
import type { Members } from './json-members.ts';
import { MAX_MATCHED, matchesTooMuch } from './patterns.ts';
import { SqlFailure, tooHeavy } from './sql-error.ts';
import { isList, type Value } from './values.ts';
import { type KnownWeights, MAX_WEIGHT, type Weighs, weightOf } from './weight.ts';

/** Most characters, bytes and elements that a statement reads and makes for one event, and most that its outputs weigh: what a device sends must not stop the broker. */
const MAX_WORK = 67_108_864;
/** Lighter values are weighed each time: a map of known weights costs more than to walk them. */
const MAX_LIGHT = 2048;
/** Maximum weight of all outputs that are known to be light; beyond it they are walked. */
const MAX_LIGHT_WEIGHT = MAX_WORK / 4;
/** The work of copying a member of an object. */
const MEMBER_WORK = 16;

/** What a statement is evaluated for: an event with its columns. */
export interface Row {
  /** The columns that `*` selects, in their order. */
  readonly names: readonly string[];
  /** The value of a column; undefined if the event does not have it. */
  column(name: string): Value;
  /**
   * The value of a column for the steps of a path: JSON text is decoded, once. undefined if it is no JSON.
   * @param members all that is read of it: an object with these members is enough
   */
  decoded(name: string, members?: Members): Value;
  /** At least the weight of all columns together, if texts count 8 times, because JSON may be decoded from them: it costs less than to walk them. Absent: not known. */
  readonly mostWeight?: number;
}

/** At least the weight of what is decoded or nested by a text, as a multiple of its length: `[1e1,1e1]` has 5, a path of points 7. */
export const TEXT_WEIGHT = 8;
/** At least the weight of the shortest values, of a list, and of the separators of an argument. */
const SMALL = 64;

/** The state of one evaluation. */
export class Scope {
  readonly row: Row;
  /** The values of aliases; undefined: the alias is absent. */
  readonly slots: Value[];
  /** What has been decoded, by its text. */
  #decoded: Map<string, Value> | undefined = undefined;
  #weights: KnownWeights | undefined = undefined;
  #work = 0;
  #matched = 0;
  #rowWeight: number | undefined = undefined;
  /** At least the weight of each list or object that was made, if texts count 8 times. */
  #madeWeight = 0;
  readonly #textWeight: number;
  #outputWeight = 0;
  /** At least the weight of the outputs that were not walked. */
  #lightWeight = 0;

  /** @param characters length of the statement: its strings have no more */
  constructor(row: Row, slots: Value[], characters: number) {
    this.row = row;
    this.slots = slots;
    this.#textWeight = TEXT_WEIGHT * characters + SMALL;
  }

  /** At least the weight of each value that an expression can have now, if texts count 8 times. What is known to be light by this is not walked. */
  get #most(): number {
    this.#rowWeight ??= this.row.mostWeight ?? Infinity;
    return Math.max(this.#rowWeight, TEXT_WEIGHT * this.#work, this.#madeWeight) + this.#textWeight;
  }

  /** Count a text that a function reads, or what it has made. @throws SqlFailure if it is too much for one event */
  counted(value: Value): Value {
    if (typeof value !== 'string' && typeof value !== 'object') return value;
    if (typeof value === 'string' || value instanceof Uint8Array || isList(value)) this.#take(value.length);
    return value;
  }

  #take(work: number): void {
    this.#work += work;
    if (this.#work > MAX_WORK)
      throw new SqlFailure(`the statement reads and makes more than ${MAX_WORK} characters for one event`);
  }

  /** Count the work of a regular expression. @param work its parts times the characters of the text @throws SqlFailure if it is too much for one event */
  matched(work: number, name: string): void {
    this.#matched += work;
    if (this.#matched > MAX_MATCHED) throw new SqlFailure(matchesTooMuch(name));
  }

  /** Count the members of an object that are copied, each as much as a short string. @throws SqlFailure if it is too much for one event */
  copied(members: number): void {
    this.#take(MEMBER_WORK * members);
  }

  /**
   * Count what a function has made. Functions that are applied to the results of each other can double them each time.
   * @throws SqlFailure if it is too much for one event, if a list or an object weighs more than 4 MiB, or if a string has more than 16 Mi
   *   characters
   */
  made(value: Value, name: string, weighs: Weighs | undefined, args: number): Value {
    if (typeof value === 'object' && value !== null && weighs !== 'part' && !(value instanceof Uint8Array))
      this.#weighMade(value, name, weighs, args);
    if (typeof value === 'string' && value.length > MOST_STRING)
      throw new SqlFailure(`the result of ${name}() has more than ${MOST_STRING} characters`);
    return this.counted(value);
  }

  #weighMade(value: object, name: string, weighs: Weighs | undefined, args: number): void {
    const most = weighs === undefined ? Infinity : args * this.#most + SMALL;
    const weight = most <= MAX_WEIGHT ? most : TEXT_WEIGHT * this.#weigh(value, `the result of ${name}()`);
    if (weight > this.#madeWeight) this.#madeWeight = weight;
  }

  /** A value was put into another one. It is weighed with the output. */
  placed(): void {
    this.#madeWeight = 2 * this.#most;
  }

  /**
   * Count an output: aliases can put an object into another one several times, and into each output of FOREACH.
   * @param fields how many values it has; all columns are one
   * @throws SqlFailure if it weighs more than 4 MiB, or if all outputs of the event are too heavy together
   */
  output<T extends object>(output: T, fields: number): T {
    const most = fields * this.#most;
    if (most <= MAX_WEIGHT && this.#lightWeight + most <= MAX_LIGHT_WEIGHT) {
      this.#lightWeight += most;
      return output;
    }
    this.#outputWeight += this.#weigh(output, 'an output');
    if (this.#outputWeight > MAX_WORK)
      throw new SqlFailure(`the outputs of the event are larger than ${MAX_WORK} bytes as JSON together`);
    return output;
  }

  #weigh(value: object, what: string): number {
    const light = weightOf(value, MAX_LIGHT);
    if (light <= MAX_LIGHT) return light;
    const weight = weightOf(value, MAX_WEIGHT, (this.#weights ??= new Map()));
    if (weight > MAX_WEIGHT) throw tooHeavy(what);
    return weight;
  }

  /** Decode JSON, each text once: FOREACH would otherwise decode the same text for each element. undefined if it is no JSON */
  decode(text: string): Value {
    const decoded = (this.#decoded ??= new Map());
    const known = decoded.get(text);
    if (known !== undefined || decoded.has(text)) return known;
    const value = decodeJson(text);
    decoded.set(text, value);
    return value;
  }

  /** What a string encodes, if it is JSON; otherwise the value itself. */
  jsonIn(value: Value): Value {
    return typeof value === 'string' ? (this.decode(value) ?? value) : value;
  }
}

/** An expression, ready to be evaluated. @throws SqlFailure */
export type Evaluate = (scope: Scope) => Value;

// An evaluation has a scope: the event, the values of aliases, and the work that is counted. Work is counted before it is done where that is
// possible, and results are weighed only if a bound of their weight is not known to be small.

import { MAX_STRING } from './arithmetic.ts';
import type { Closure } from './compile.ts';
import { isSimple } from './functions/characters.ts';
import type { FunctionWork } from './functions/function.ts';
import { decodeJson } from './json.ts';
import type { Members } from './json-members.ts';
import { MAX_MATCHED, matchesTooMuch } from './patterns.ts';
import { SqlFailure, tooHeavy } from './sql-error.ts';
import { isList, type Value } from './values.ts';
import { type KnownWeights, MAX_WEIGHT, type Weighs, weightOf } from './weight.ts';

/**
 * Maximum number of characters, bytes and elements that a statement reads and creates for one event, and maximum total
 * weight of its outputs: input from a device must not stop the broker.
 */
const MAX_WORK = 67_108_864;
/** Characters that are found as grapheme clusters take about 3 us each, and count this many times. */
const SEGMENT_WORK = 100;

/** The most that a statement may do for one event. */
export interface WorkLimits {
  /** Characters, bytes and elements that are read and created. */
  readonly characters: number;
  /** Parts of regular expressions times the characters of their texts. */
  readonly matched: number;
}

/** The limits of rules. */
const RULE_LIMITS: WorkLimits = { characters: MAX_WORK, matched: MAX_MATCHED };
/** Values below this weight are weighed every time: looking them up costs more than walking them. */
const MAX_LIGHT = 2048;
/** Maximum total weight of outputs that are known to be light; beyond it, outputs are walked. */
const MAX_LIGHT_WEIGHT = MAX_WORK / 4;
/** The work counted for copying a member of an object. */
const MEMBER_WORK = 16;

/** The input of an evaluation: an event with its columns. */
export interface EventColumns {
  /** The columns that `*` selects, in order. */
  readonly names: readonly string[];
  /** The value of a column; undefined if the event does not have the column. */
  column(name: string): Value;
  /**
   * The value of a column as seen by the steps of a path: JSON text is decoded, once. Undefined if the text is not
   * valid JSON.
   * @param members the only members that are read; an object with these members is sufficient
   */
  decoded(name: string, members?: Members): Value;
  /**
   * An upper bound of the weight of all columns together. Strings count 8 times, because JSON may be decoded from them;
   * this is cheaper than walking them. Absent if not known.
   */
  readonly mostWeight?: number;
  /** The last column whose text `decoded` could not decode; absent if there is none. */
  readonly undecoded?: string | undefined;
}

/**
 * An upper bound of the weight of what a text decodes to or nests, as a multiple of its length: `[1e1,1e1]` has 5, a
 * path of points 7.
 */
export const TEXT_WEIGHT = 8;
/** An upper bound of the weight of the smallest values, of a list, and of an argument's separators. */
const SMALL = 64;

/** The state of one evaluation. */
export class Scope implements FunctionWork {
  readonly row: EventColumns;
  /** The values of aliases; undefined if an alias is absent. */
  readonly slots: Value[];
  /** Decoded JSON values, by their text. */
  #decoded: Map<string, Value> | undefined = undefined;
  #weights: KnownWeights | undefined = undefined;
  readonly #limits: WorkLimits;
  #work = 0;
  #matched = 0;
  #rowWeight: number | undefined = undefined;
  /** An upper bound of the weight of every list or object created so far; strings count 8 times. */
  #madeWeight = 0;
  readonly #textWeight: number;
  #outputWeight = 0;
  /** An upper bound of the total weight of the outputs that were not walked. */
  #lightWeight = 0;

  /**
   * @param characters length of the statement, and thereby an upper bound of the length of its strings
   * @param limits default: those of rules
   */
  constructor(row: EventColumns, slots: Value[], characters: number, limits = RULE_LIMITS) {
    this.row = row;
    this.slots = slots;
    this.#limits = limits;
    this.#textWeight = TEXT_WEIGHT * characters + SMALL;
  }

  /**
   * An upper bound of the weight of any value that an expression can have at present; strings count 8 times. Values
   * that are light by this bound are not walked.
   */
  get #most(): number {
    this.#rowWeight ??= this.row.mostWeight ?? Infinity;
    return Math.max(this.#rowWeight, TEXT_WEIGHT * this.#work, this.#madeWeight) + this.#textWeight;
  }

  /**
   * Count a text that a function reads, or a value that it has created. @throws SqlFailure if the event exceeds its
   * limit
   */
  counted(value: Value): Value {
    if (typeof value !== 'string' && typeof value !== 'object') return value;
    if (typeof value === 'string' || value instanceof Uint8Array || isList(value)) this.#take(value.length);
    return value;
  }

  #take(work: number): void {
    this.#work += work;
    const { characters } = this.#limits;
    if (this.#work > characters)
      throw new SqlFailure(`the statement reads and makes more than ${characters} characters for one event`);
  }

  /** Count a text whose characters a function finds as readers see them. @throws SqlFailure as `counted` */
  segmented(value: Value): Value {
    if (typeof value === 'string') this.segmentText(value);
    return value;
  }

  segmentText(text: string): string {
    if (!isSimple(text)) this.#take(SEGMENT_WORK * text.length);
    return text;
  }

  readText(text: string): string {
    this.#take(text.length);
    return text;
  }

  compared(work: number): void {
    this.#take(work);
  }

  /** Count the bits of an integer that is divided, because this takes long for many digits. @throws SqlFailure if the event exceeds its limit */
  divided(value: Value): void {
    if (typeof value === 'bigint') this.#take(4 * value.toString(16).length);
  }

  /**
   * Count the work of a regular expression. @param work number of its parts times the characters of the text @throws
   * SqlFailure if the event exceeds its limit
   */
  matched(work: number, name: string): void {
    this.#matched += work;
    const { matched } = this.#limits;
    if (this.#matched > matched) throw new SqlFailure(matchesTooMuch(name, matched));
  }

  /**
   * Count the members of an object that are copied, each as much as a short string. @throws SqlFailure if the event
   * exceeds its limit
   */
  copied(members: number): void {
    this.#take(MEMBER_WORK * members);
  }

  /**
   * Count the result of a function. Nested calls could otherwise double the result at each level.
   * @throws SqlFailure if the event exceeds its limit, if a list or an object weighs more than 4 MiB, or if a string
   *   has more than 16 Mi characters
   */
  made(value: Value, name: string, weighs: Weighs | undefined, args: number): Value {
    if (typeof value === 'object' && value !== null && weighs !== 'part' && !(value instanceof Uint8Array))
      this.#weighMade(value, name, weighs, args);
    if (typeof value === 'string' && value.length > MAX_STRING)
      throw new SqlFailure(`the result of ${name}() has more than ${MAX_STRING} characters`);
    return this.counted(value);
  }

  #weighMade(value: object, name: string, weighs: Weighs | undefined, args: number): void {
    const most = weighs === undefined ? Infinity : args * this.#most + SMALL;
    const weight = most <= MAX_WEIGHT ? most : TEXT_WEIGHT * this.#weigh(value, `the result of ${name}()`);
    if (weight > this.#madeWeight) this.#madeWeight = weight;
  }

  /** Note that a value was placed into another one; it is weighed with the output. */
  placed(): void {
    this.#madeWeight = 2 * this.#most;
  }

  /**
   * Count an output. Aliases can place an object several times into another one, and into each output of FOREACH.
   * @param fields number of its values; all columns count as one
   * @throws SqlFailure if it weighs more than 4 MiB, or if the outputs of the event weigh too much together
   */
  output<T extends object>(output: T, fields: number): T {
    const most = fields * this.#most;
    if (most <= MAX_WEIGHT && this.#lightWeight + most <= MAX_LIGHT_WEIGHT) {
      this.#lightWeight += most;
      return output;
    }
    this.#outputWeight += this.#weigh(output, 'an output');
    if (this.#outputWeight > MAX_WORK)
      throw new SqlFailure(`the outputs of the event together have more than ${MAX_WORK} bytes as JSON`);
    return output;
  }

  #weigh(value: object, what: string): number {
    const light = weightOf(value, MAX_LIGHT, this.#weights); // enumerating the keys of a large part that is known takes milliseconds
    if (light <= MAX_LIGHT) return light;
    const weight = weightOf(value, MAX_WEIGHT, (this.#weights ??= new Map()));
    if (weight > MAX_WEIGHT) throw tooHeavy(what);
    return weight;
  }

  /**
   * Decode JSON, each text only once: FOREACH would otherwise decode the same text for each element. Undefined if the
   * text is not valid JSON.
   */
  decode(text: string): Value {
    const decoded = (this.#decoded ??= new Map());
    const known = decoded.get(text);
    if (known !== undefined || decoded.has(text)) return known;
    const value = decodeJson(text);
    decoded.set(text, value);
    return value;
  }

  /** The decoded value of a string that is valid JSON; otherwise the value itself. */
  jsonIn(value: Value): Value {
    return typeof value === 'string' ? (this.decode(value) ?? value) : value;
  }
}

/** A compiled expression. @throws SqlFailure */
export type EventClosure = Closure<Scope, Value>;

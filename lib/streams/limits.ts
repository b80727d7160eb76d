import { MAX_MATCHED, matchesTooMuch } from '../sql/patterns.ts';
import { MAX_WEIGHT, weightOf } from '../sql/weight.ts';
import type { StreamFunctionTools } from './function.ts';
import type { Evaluate, Tuple } from './values/tuple.ts';
import { printedCharacters, StreamFailure, tooHeavy } from './values/values.ts';

/** Maximum weight of all results for one row together, as a multiple of `rowWeight`. */
export const MAX_ROW_FACTOR = 16;
/** Shorter strings are not counted: the length of a statement limits their number. */
const LONG_TEXT = 1_024;

/** The work of printing a character of an array or a struct: about 64 ns. */
const PRINTING = 16;

type Tools = Pick<StreamFunctionTools, 'rowWeight' | 'rowWork' | 'time'>;

/**
 * The work of a rule's functions for one row: the weight of the lists, objects and long strings that they create, and
 * the work of regular expressions.
 */
export class RowWork {
  readonly #most: number;
  #tuple: Tuple | undefined = undefined;
  #weight = 0;
  #matched = 0;
  /** The part of `printedCharacters` that is counted already. */
  #printed = 0;

  /** @param rowWeight the limit of the same name */
  constructor(rowWeight: number) {
    this.#most = MAX_ROW_FACTOR * rowWeight;
  }

  /** Add the result of a function for a row. @throws StreamFailure if the limit is exceeded */
  add(tuple: Tuple, weight: number): void {
    this.begin(tuple);
    this.#weight += weight;
    if (this.#weight > this.#most) throw tooHeavy('the result of all functions for the row', this.#most);
  }

  /**
   * Add the work of a regular expression: its parts times the characters of the text.
   * @throws StreamFailure if the row exceeds its limit
   */
  addMatched(tuple: Tuple, work: number, name: string): void {
    this.begin(tuple);
    this.#matched += work;
    if (this.#matched > MAX_MATCHED) throw new StreamFailure(matchesTooMuch(name));
  }

  /**
   * Add the printed characters of arrays and structs, because printing takes longer than creating them.
   * @throws StreamFailure if the limit is exceeded
   */
  addPrinted(tuple: Tuple): void {
    const printed = printedCharacters();
    if (printed === this.#printed) return;
    const characters = printed - this.#printed;
    this.#printed = printed;
    this.add(tuple, PRINTING * characters);
  }

  /** Note that a function is called for a row. */
  begin(tuple: Tuple): void {
    if (tuple === this.#tuple) return;
    this.#tuple = tuple;
    this.#printed = printedCharacters();
    this.#weight = this.#matched = 0;
  }
}

/**
 * Refuse results that are too heavy: nested calls could otherwise double the result at each level. In a test, the call
 * also fails when the time limit is exceeded.
 * @param what subject of the message: the function
 */
export function weighed(evaluate: Evaluate, what: string, tools: Tools | undefined): Evaluate {
  const { rowWeight: most = MAX_WEIGHT, rowWork, time } = tools ?? {};
  const counted = Math.min(LONG_TEXT, most + 1);
  const call: Evaluate = (tuple) => {
    rowWork?.begin(tuple);
    const value = evaluate(tuple);
    rowWork?.addPrinted(tuple);
    if (typeof value === 'object' ? value === null : typeof value !== 'string' || value.length < counted) return value;
    const weight = typeof value === 'string' ? value.length : weightOf(value, most);
    if (weight > most) throw tooHeavy(`the result of ${what}`, most);
    rowWork?.add(tuple, weight);
    return value;
  };
  if (time === undefined) return call;
  return (tuple) => {
    const value = call(tuple);
    checkTime(time);
    return value;
  };
}

/**
 * In a test, start an evaluation only while there is time left: one step of a test may evaluate an expression for many
 * pairs of rows.
 */
export function timed(evaluate: Evaluate, { time }: Tools): Evaluate {
  if (time === undefined) return evaluate;
  return (tuple) => {
    checkTime(time);
    return evaluate(tuple);
  };
}

/** @throws StreamFailure if the time limit of a test is exceeded */
export function checkTime(time: StreamFunctionTools['time']): void {
  if (time?.isOver === true) throw new StreamFailure('the time of the test is over');
}

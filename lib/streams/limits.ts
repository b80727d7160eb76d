import { MAX_MATCHED, matchesTooMuch } from '../sql/patterns.ts';
import { MAX_WEIGHT, weightOf } from '../sql/weight.ts';
import type { FunctionTools } from './function.ts';
import type { Evaluate, Tuple } from './values/tuple.ts';
import { printedCharacters, StreamFailure, tooHeavy } from './values/values.ts';

/** Bound of all that is made of one row together, as a multiple of `rowWeight`. */
export const MAX_ROW_FACTOR = 16;
/** Shorter strings are not counted: a statement has no more of them than its own length allows. */
const LONG_TEXT = 1_024;

/** The work of printing a character of an array or a struct: about 64 ns. */
const PRINTING = 16;

type Tools = Pick<FunctionTools, 'rowWeight' | 'rowWork' | 'time'>;

/** What the functions of a rule do for one row: the weight of the lists, objects and long strings that they make, and the work of regular expressions. */
export class RowWork {
  readonly #most: number;
  #tuple: Tuple | undefined = undefined;
  #weight = 0;
  #matched = 0;
  /** Of `printedCharacters`, those that are counted. */
  #printed = 0;

  /** @param rowWeight the bound of this name */
  constructor(rowWeight: number) {
    this.#most = MAX_ROW_FACTOR * rowWeight;
  }

  /** Add what a function has made for a row. @throws StreamFailure if it is too much */
  add(tuple: Tuple, weight: number): void {
    this.begin(tuple);
    this.#weight += weight;
    if (this.#weight > this.#most) throw tooHeavy('all that the functions make for the row', this.#most);
  }

  /** Add the work of a regular expression: its parts times the characters of the text. @throws StreamFailure if it is too much for the row */
  addMatched(tuple: Tuple, work: number, name: string): void {
    this.begin(tuple);
    this.#matched += work;
    if (this.#matched > MAX_MATCHED) throw new StreamFailure(matchesTooMuch(name));
  }

  /** Add what was printed of arrays and structs, which takes longer than to make it. @throws StreamFailure if it is too much */
  addPrinted(tuple: Tuple): void {
    const printed = printedCharacters();
    if (printed === this.#printed) return;
    const characters = printed - this.#printed;
    this.#printed = printed;
    this.add(tuple, PRINTING * characters);
  }

  /** A function is called for a row. */
  begin(tuple: Tuple): void {
    if (tuple === this.#tuple) return;
    this.#tuple = tuple;
    this.#printed = printedCharacters();
    this.#weight = this.#matched = 0;
  }
}

/**
 * Refuse results that are too heavy: functions that are applied to the results of each other can double them each time. In a test, the call also fails
 * when the time is over.
 * @param what for the message: the function
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

/** In a test, evaluation begins only as long as there is time: one step of a test may evaluate an expression for many pairs of rows. */
export function timed(evaluate: Evaluate, { time }: Tools): Evaluate {
  if (time === undefined) return evaluate;
  return (tuple) => {
    checkTime(time);
    return evaluate(tuple);
  };
}

/** @throws StreamFailure if the time of a test is over */
export function checkTime(time: FunctionTools['time']): void {
  if (time?.isOver === true) throw new StreamFailure('the time of the test is over');
}

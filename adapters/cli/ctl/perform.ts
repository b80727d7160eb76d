import type { Action, ActionContext, Output, RowForm } from './action.ts';
import { ADJUSTMENTS, type Adjustment } from './adjustments.ts';
import { answerTo, valuesOf } from './request.ts';
import { STREAM_ADJUSTMENTS } from './stream-adjustments.ts';

function adjustmentOf({ name }: Action): Adjustment {
  return ADJUSTMENTS[name] ?? STREAM_ADJUSTMENTS[name] ?? {};
}

/** The form in which the rows of an action are printed on a terminal. */
export function formOf(action: Action): RowForm {
  const { line, times } = adjustmentOf(action);
  return { columns: action.columns, line, times };
}

/** Send the request of an action. @param given the arguments @returns what it prints */
export async function perform(action: Action, context: ActionContext, given: readonly string[]): Promise<Output> {
  const { run, input, output = printed } = adjustmentOf(action);
  if (run !== undefined) return run(context, given, action);
  const values = await valuesOf(action, context, given);
  const sent = input === undefined ? values : await input(values, context, action);
  return output((await answerTo(action, context, sent)) as never, context, given);
}

/** The output for the data of an answer: a sentence, rows, a record, or nothing. */
function printed(data: unknown): Output {
  if (data === undefined) return undefined;
  if (typeof data === 'string') return { lines: data.split('\n').filter((line) => line !== ''), isWhole: true };
  if (Array.isArray(data)) return data.map((one) => (typeof one === 'object' && one !== null ? one : { name: one }));
  return Symbol.asyncIterator in (data as object) ? (data as AsyncIterable<object>) : { record: data as object };
}

import type { ArrivalQuestion, Broker } from '../../../lib/index.ts';

/** The codes, texts and ends of the causes of an answer, in order. */
export async function summaryOf(broker: Broker, question: ArrivalQuestion) {
  const { causes } = await broker.monitor.why(question);
  return causes.map(({ code, text, evidence }) => [code, text, evidence.until] as const);
}

import { ProtocolError } from '../base/errors.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { Zone } from '../records/zone.ts';
import { controlIn } from '../topics/topic.ts';

/**
 * Refuse control characters and non-characters if the zone does so (MQTT 5.0 section 1.5.4).
 * @param what name of the string, for the error message
 * @throws ProtocolError 0x81
 */
export function checkControls({ controlCharacters }: Zone, text: string | undefined, what: string): void {
  if (text === undefined || controlCharacters === 'allow') return;
  const control = controlIn(text);
  if (control === undefined) return;
  const why = `contains ${control}; control characters and non-characters are not allowed (option controlCharacters)`;
  throw new ProtocolError(ReasonCode.malformedPacket, `${what}: ${why}`);
}

/** Check the number of topic levels. @throws ProtocolError 0x90 if it exceeds `maxTopicLevels` */
export function checkLevels({ maxTopicLevels }: Zone, levels: number): void {
  if (maxTopicLevels === 0 || levels <= maxTopicLevels) return;
  const why = `the topic has ${levels} levels, more than the limit of ${maxTopicLevels} (option maxTopicLevels)`;
  throw new ProtocolError(ReasonCode.topicNameInvalid, why);
}

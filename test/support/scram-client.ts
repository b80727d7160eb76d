import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';

const DIGESTS = { 'SCRAM-SHA-256': 'sha256', 'SCRAM-SHA-512': 'sha512' } as const;

/** The answer of a client to a challenge of SCRAM, by the formulas of RFC 5802, section 3. */
export function clientFinal(
  password: string,
  bare: string,
  challenge: string,
  method: keyof typeof DIGESTS,
  binding = 'biws'
): string {
  const digest = DIGESTS[method];
  const [, nonce, salt, iterations] = /^r=([^,]+),s=([^,]+),i=(\d+)$/.exec(challenge) as RegExpExecArray;
  const hmac = (key: Buffer, text: string) => createHmac(digest, key).update(text).digest();
  const length = createHash(digest).digest().length;
  const salted = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(iterations), length, digest);
  const key = hmac(salted, 'Client Key');
  const head = `c=${binding},r=${nonce}`;
  const signature = hmac(createHash(digest).update(key).digest(), `${bare},${challenge},${head}`);
  return `${head},p=${Buffer.from(key.map((byte, at) => byte ^ signature[at])).toString('base64')}`;
}

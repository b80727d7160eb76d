/** Webhooks: the events of a broker as requests to a web server. */
export { decodeBase62, encodeBase62 } from './base62.ts';
export { type PayloadEncoding, WEBHOOK_EVENTS, type WebhookEvent } from './bodies.ts';
export { type SigningKey, WEBHOOK_OPTIONS, type WebhookBody, type WebhookOptions } from './options.ts';
export type { WebhookRule } from './rules.ts';
export { type WebHookTypeOptions, webHook } from './web-hook-resource.ts';
export { type Webhook, webhook, webhooks } from './webhook.ts';

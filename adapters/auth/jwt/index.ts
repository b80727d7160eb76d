/** Authentication with JSON Web Tokens. This entry point needs the `jose` package, an optional peer dependency, when the broker starts. */
export type { OutgoingTls, Pem } from '../../outgoing/index.ts';
export { jwt } from './jwt-source.ts';
export type { JwtOptions } from './options.ts';

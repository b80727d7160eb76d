// The types of Nest that the module meets are described here by their structure, because `@nestjs/common` is optional: an app with Nest 10 and one
// with Nest 12 compile against the same declarations.
import type { HostOptions } from '../hosts/index.ts';
import type { EmbermqModule } from './module.ts';

/** Options of `EmbermqModule.forRoot`. */
export interface EmbermqModuleOptions extends HostOptions {
  /** Provide `BROKER` to all modules of the app, not only to those that import this one. Default true. */
  readonly global?: boolean;
}

/** Options of `EmbermqModule.forRootAsync`. */
export interface EmbermqAsyncOptions<Import = never> {
  /** Provide `BROKER` to all modules of the app, not only to those that import this one. Default true. */
  readonly global?: boolean;
  /** The modules that export what `inject` names. Default: none. */
  readonly imports?: readonly Import[];
  /** The injection tokens of the arguments of `useFactory`. Default: none. */
  readonly inject?: readonly unknown[];
  /** Returns the options of the broker, once for each app. */
  readonly useFactory: (...dependencies: never[]) => HostOptions | Promise<HostOptions>;
}

/** A provider of the module, in the form that Nest reads. */
export type EmbermqProvider =
  | {
      /** The injection token. */
      provide: symbol;
      /** The value itself. */
      useValue: string;
    }
  | {
      /** The injection token. */
      provide: symbol;
      /** The injection tokens of the arguments of `useFactory`. */
      inject: (symbol | typeof EmbermqModule)[];
      /** Makes the value. */
      useFactory: (...dependencies: unknown[]) => unknown;
    };

/** A dynamic module of Nest: what `imports` of a module accepts. */
export interface EmbermqDynamicModule<Import = never> {
  /** The class of the module. */
  module: typeof EmbermqModule;
  /** True if the exports are provided to all modules. */
  global: boolean;
  /** The modules whose exports the options need. */
  imports: Import[];
  /** The provider of `BROKER`. */
  providers: EmbermqProvider[];
  /** `BROKER`. */
  exports: symbol[];
}

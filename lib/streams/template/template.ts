import { InvalidInput, truncated } from '../../base/errors.ts';
import { nearest } from '../../base/fields.ts';
import { hideInText } from '../../base/hidden-text.ts';
import { StreamFailure } from '../values/values.ts';
import { compileTree, Run } from './compile.ts';
import { type BoundFunctions, bind, type TemplateFunctions } from './function-table.ts';
import { goFunctions } from './functions-go.ts';
import { textFunctions } from './functions-text.ts';
import { type TemplateTools, toolFunctions } from './functions-tools.ts';
import { LIST_FUNCTIONS, NUMBER_FUNCTIONS, valueFunctions } from './functions-values.ts';
import { parseTemplate } from './parse.ts';
import { placeOf, TemplateError } from './template-error.ts';
import { asTemplateData } from './template-value.ts';
import { UrlRun } from './url-run.ts';

/**
 * A compiled template, which is filled in with rows.
 * @throws StreamFailure with the reason and the position in the template
 */
export type Template = (data: unknown) => string;

/** Options of `compileTemplate`. */
interface TemplateOptions {
  /** The property that contains the template, for messages. Default `dataTemplate`. */
  readonly property?: string;
  /** Maximum number of characters of one output, also for loops. Default 1048576. */
  readonly most?: number;
  /** If true, fields of a list of rows are those of its first row, instead of an error. Default false. */
  readonly readsFirst?: boolean;
  /** If true, the template makes a URL, and values are encoded; see `UrlRun`. Default false. */
  readonly isUrl?: boolean;
}

/** Default maximum number of characters of one output. */
const MAX_CHARACTERS = 1_048_576;

/**
 * Compile a data template: the documented subset of Go's text/template, with the functions of the sprig collection that
 * have no side effects. It is parsed once, to closures.
 *
 * Numbers of rows are floats, which print in their shortest form: `3`, `25.5`, `1.541152486013e+12`. Missing values and
 * null print `<no value>`. `env`, and functions that create keys or certificates, are not available.
 * @param tools templates with the same object share their functions
 * @throws InvalidInput PROPERTY_INVALID: `property dataTemplate TEXT is invalid: template: sink:LINE:COLUMN: REASON`
 */
export function compileTemplate(text: string, tools: TemplateTools, options: TemplateOptions = {}): Template {
  const { property = 'dataTemplate', most = MAX_CHARACTERS, readsFirst = false, isUrl = false } = options;
  const { table, call } = functionsOf(tools, most);
  const isFunction = (name: string) => Object.hasOwn(table, name);
  try {
    const tree = parseTemplate(text, isFunction);
    const execute = compileTree(tree, text, { functions: call, readsFirst });
    return (data) => {
      const run = new (isUrl ? UrlRun : Run)(asTemplateData(data), most);
      try {
        execute(run);
        run.end();
      } catch (error) {
        if (error instanceof RangeError) throw new StreamFailure(`the template fails: ${error.message}`, error);
        throw error;
      }
      return run.out;
    };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const shown = truncated(hideInText(text), 200);
    const reason = `${placeOf(text, error.at)}: ${error.message}${hint(error.message, table)}`;
    const message = `property ${property} ${shown} is invalid: ${reason}`;
    throw new InvalidInput('PROPERTY_INVALID', property, 'a template', text, message);
  }
}

/** The functions of a template, and those prepared for calls. Templates with the same tools share them. */
interface Functions {
  readonly most: number;
  readonly table: TemplateFunctions;
  readonly call: BoundFunctions;
}

const shared = new WeakMap<TemplateTools, Functions>();

function functionsOf(tools: TemplateTools, most: number): Functions {
  const before = shared.get(tools);
  if (before?.most === most) return before;
  const table = {
    ...textFunctions(most),
    ...NUMBER_FUNCTIONS,
    ...LIST_FUNCTIONS,
    ...valueFunctions(most),
    ...goFunctions(most),
    ...toolFunctions(tools, most)
  };
  const calls = new Map<string, ReturnType<typeof bind>>();
  const call: BoundFunctions = (name) => {
    let bound = calls.get(name);
    if (bound === undefined) calls.set(name, (bound = bind(table[name])));
    return bound;
  };
  const functions = { most, table, call };
  shared.set(tools, functions);
  return functions;
}

function hint(message: string, functions: TemplateFunctions): string {
  const [, name] = /^function "(.*)" not defined$/.exec(message) ?? [];
  const near = name === undefined ? undefined : nearest(name, Object.keys(functions));
  return near === undefined ? '' : `; did you mean "${near}"?`;
}

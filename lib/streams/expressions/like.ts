/** Whether a string matches a pattern of LIKE: `%` stands for any characters, `_` for one, `\` takes the meaning of the next one away. */
type Matcher = (text: string) => boolean;

const ANY_RUN = Symbol('any characters');
const ANY_ONE = Symbol('one character');

type Element = string | typeof ANY_RUN | typeof ANY_ONE;

/** Compile a pattern of LIKE. Patterns with nothing but `%` at the ends are searched for as they are. */
export function likePattern(pattern: string): Matcher {
  const elements = elementsOf(pattern);
  const runs = elements.filter((element) => element === ANY_RUN).length;
  const isPlain = !elements.includes(ANY_ONE);
  const begins = elements[0] === ANY_RUN;
  const ends = elements[elements.length - 1] === ANY_RUN;
  const text = elements.filter((element) => typeof element === 'string').join('');
  if (isPlain && runs === 0) return (value) => value === text;
  if (isPlain && runs === 1 && ends) return (value) => value.startsWith(text);
  if (isPlain && runs === 1 && begins) return (value) => value.endsWith(text);
  if (isPlain && runs === 2 && begins && ends) return (value) => value.includes(text);
  return (value) => matches([...value], elements);
}

function elementsOf(pattern: string): Element[] {
  const elements: Element[] = [];
  const characters = [...pattern];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at];
    if (character === '\\' && at + 1 < characters.length) elements.push(characters[++at]);
    else if (character === '_') elements.push(ANY_ONE);
    else if (character !== '%') elements.push(character);
    else if (elements[elements.length - 1] !== ANY_RUN) elements.push(ANY_RUN);
  }
  return elements;
}

/** Only the last `%` is ever tried again, so that the time is at most the product of the lengths. */
function matches(text: readonly string[], elements: readonly Element[]): boolean {
  let [at, next, run, from] = [0, 0, -1, 0];
  while (at < text.length) {
    const element = elements[next];
    if (element === ANY_RUN) [run, from, next] = [next, at, next + 1];
    else if (element === ANY_ONE || element === text[at]) [at, next] = [at + 1, next + 1];
    else if (run === -1) return false;
    else [at, next] = [++from, run + 1];
  }
  while (elements[next] === ANY_RUN) next++;
  return next === elements.length;
}

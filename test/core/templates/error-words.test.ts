import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { readErrorWords } from '../../../src/core/templates/error-words.ts'
import { PROJECT_ROOT } from '../../support/project.ts'

describe('words for errors', () => {
  const words = readErrorWords(
    ['# a comment', '', 'At most {1} of {2}? = Von {2} nur {1}.', 'M_FORBIDDEN = Nein.', 'other = Geht nicht.'].join(
      '\n',
    ),
  )

  it('are those of the sentence, then those of the code, then those of all others', () => {
    expect(words('At most 3 of $&?', 'M_FORBIDDEN')).toBe('Von $& nur 3.')
    expect(words('At most 3', 'M_FORBIDDEN')).toBe('Nein.')
    expect(words('At most 3', 'M_UNKNOWN')).toBe('Geht nicht.')
  })

  it('are the sentence itself in a language that has none', () => {
    expect(readErrorWords('# nothing\n')('As it is.', 'M_UNKNOWN')).toBe('As it is.')
  })

  it.each([
    ['no sign between', 'A sentence'],
    ['an empty side', 'A sentence. = '],
    ['a code that does not exist', 'M_NOTHING = Nichts'],
    ['a part that the sentence lacks', 'A {1}. = Ein {2}.'],
  ])('have a line with %s refused', (_, line) => {
    expect(() => readErrorWords(`# one\n${line}\n`)).toThrow()
  })
})

test('every sentence of ours that is translated is one that the server says', () => {
  const folder = join(PROJECT_ROOT, 'src')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const source = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n')
  const lines = readFileSync(join(PROJECT_ROOT, 'templates/default/de/errors.txt'), 'utf8').split('\n')
  const sentences = lines.filter((line) => /^[A-Z].*\. = /.test(line)).map((line) => line.slice(0, line.indexOf(' = ')))
  expect(sentences.length).toBeGreaterThan(30)
  const unsaid = sentences.filter((sentence) => !sentence.split(/\{\d\}/).every((part) => source.includes(part)))
  expect(unsaid).toEqual([])
})

import { expect, test } from 'vitest'
import { joined } from '../../src/domain/backup/chunks.ts'
import { portionsOf } from '../../src/domain/backup/portions.ts'

async function* chunks(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

async function cut(source: AsyncIterable<Buffer>, size: number, endIn?: (chunk: Buffer) => number) {
  const found: [text: string, lines: number, bytes: number][] = []
  for await (const portion of portionsOf(source, size, endIn)) {
    const text = (await joined(portion.chunks)).toString()
    found.push([text, portion.lines, portion.bytes])
  }
  return found
}

test.each([
  [[], []],
  [['a\n'], ['a\n']],
  // What follows the last whole line begins the next portion.
  [
    ['aaa\nbb', 'b\n', 'ccc\n'],
    ['aaa\n', 'bbb\n', 'ccc\n'],
  ],
  // Less than a portion is left, and what is left ends without a line's end.
  [['aaaaaaa\nb'], ['aaaaaaa\n', 'b']],
  // No portion is empty, and one that ends with the stream is the last.
  [
    ['aaaa\n', 'bbbb\n'],
    ['aaaa\n', 'bbbb\n'],
  ],
  // A long row makes its portion longer.
  [['aaaaaaaaa', 'aaaaaaaaa', 'a\nb\n'], ['aaaaaaaaaaaaaaaaaaa\nb\n']],
] as const)('%j is cut behind whole lines: %j', async (given, wanted) => {
  const found = await cut(chunks(...given), 4)
  expect(found).toEqual(wanted.map((text) => [text, text.split('\n').length - 1, text.length]))
})

test('or behind whole chunks', async () => {
  const found = await cut(chunks('aa', 'bbbb', 'c\nc', 'd'), 4, (chunk) => chunk.length)
  expect(found.map(([text]) => text)).toEqual(['aabbbb', 'c\ncd'])
})

test('a reader that fails closes the source', async () => {
  let isClosed = false
  async function* source(): AsyncGenerator<Buffer> {
    try {
      for (;;) yield Buffer.from('line\n')
    } finally {
      isClosed = true
    }
  }
  const failing = async () => {
    for await (const portion of portionsOf(source(), 12)) {
      await joined(portion.chunks)
      throw new Error('full')
    }
  }
  await expect(failing()).rejects.toThrow('full')
  expect(isClosed).toBe(true)
})

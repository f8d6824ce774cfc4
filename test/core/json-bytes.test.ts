import { setImmediate as later } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { JsonBytes } from '../../src/core/json-bytes.ts'

const placeOf = (bytes: number) => (bytes === 0 ? undefined : { bytes: Buffer.alloc(bytes), leave() {} })

async function inChunks(json: JsonBytes, bytes: number): Promise<string[]> {
  const found: string[] = []
  for await (const chunk of json.chunks(bytes)) found.push(chunk.toString())
  return found
}

test('short text stays text, and its length is in bytes', () => {
  const json = new JsonBytes().text('["ä"').text(',"b"]')
  expect(json.whole()).toBe('["ä","b"]')
  expect(json.length).toBe(10)
  expect(json.toBuffer().toString()).toBe('["ä","b"]')
})

test('text of every length and script comes out as it went in', () => {
  for (const letter of ['a', 'ä', '水', '😀']) {
    for (const count of [0, 1, 30, 63, 64, 65, 10_000, 16_384, 16_385, 30_000, 100_000]) {
      const text = JSON.stringify(letter.repeat(count))
      const json = new JsonBytes().bytes(Buffer.from('[')).text(text).text(',').text(text).bytes(Buffer.from(']'))
      const whole = json.toBuffer()
      expect(whole.toString()).toBe(`[${text},${text}]`)
      expect(json.length).toBe(whole.length)
      expect(new JsonBytes().text(text).toBuffer().toString()).toBe(text)
    }
  }
})

test('an answer comes out as it went in, whatever length was expected, and is handed out as it was written if it fits', async () => {
  const letters = ['a', 'ä', '水', '😀']
  const parts = Array.from({ length: 400 }, (_, index) => `"${index} ${letters[index % 4]!.repeat(index * 7)}",`)
  const expected = parts.join('')
  const bytes = Buffer.byteLength(expected)
  expect(bytes).toBeGreaterThan(1 << 20)
  for (const expectedBytes of [0, 300_000, bytes - 1, bytes, 2 * bytes]) {
    const json = new JsonBytes(placeOf(expectedBytes))
    parts.forEach((part, index) => void (index % 3 === 0 ? json.bytes(Buffer.from(part)) : json.text(part)))
    expect(json.length).toBe(bytes)
    const whole = json.toBuffer()
    expect(whole.toString()).toBe(expected)
    if (expectedBytes > bytes) expect(json.toBuffer().buffer).toBe(whole.buffer)
    json.text('more')
    expect(whole.toString()).toBe(expected)
    const chunks: Buffer[] = []
    for await (const chunk of json.chunks(100_000)) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe(`${expected}more`)
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(400_000)
  }
})

test('what is made later has its place in an answer whose length was expected', async () => {
  const json = new JsonBytes(placeOf(1 << 20)).text('[1,')
  json.later(async function* () {
    yield new JsonBytes().text('2,')
  })
  expect(await inChunks(json.text('3]'), 1 << 16)).toEqual(['[1,', '2,', '3]'])
  expect(json.length).toBe('[1,3]'.length)
})

test('answers that are written in turn do not mix', () => {
  const many = Array.from({ length: 20 }, () => new JsonBytes())
  for (let round = 0; round < 3_000; round++) {
    const one = many[(round * 7) % 20]!
    if (round % 3 === 0) one.text(`"text ${round}",`)
    else one.bytes(Buffer.from(`"bytes ${round}",`))
  }
  many.forEach((one, place) => {
    const expected: string[] = []
    for (let round = 0; round < 3_000; round++)
      if ((round * 7) % 20 === place) expected.push(round % 3 === 0 ? `"text ${round}",` : `"bytes ${round}",`)
    expect(one.toBuffer().toString()).toBe(expected.join(''))
    expect(one.toBuffer().toString()).toBe(expected.join(''))
  })
})

test('what was added to another answer may be added again, and both go on', () => {
  const part = new JsonBytes().bytes(Buffer.from('{"a":')).text('1}')
  const first = new JsonBytes().text('[').append(part).text(',')
  const second = new JsonBytes().append(part).append(part)
  part.text(' ')
  first.append(part).text(']')
  expect(first.toBuffer().toString()).toBe('[{"a":1},{"a":1} ]')
  expect(second.toBuffer().toString()).toBe('{"a":1}{"a":1}')
})

test('bytes that were handed out do not change when more is written', () => {
  const json = new JsonBytes().bytes(Buffer.from('abc'))
  const before = json.toBuffer()
  json.text('def')
  new JsonBytes().bytes(Buffer.from('xyz')).toBuffer()
  expect(before.toString()).toBe('abc')
  expect(json.toBuffer().toString()).toBe('abcdef')
})

test('chunks are as large as asked for, and end before what is made later', async () => {
  const later = async function* () {
    yield new JsonBytes().text('"late",')
    yield new JsonBytes().bytes(Buffer.from('"later"'))
  }
  const piece = Buffer.from(JSON.stringify('x'.repeat(20_000)))
  const json = new JsonBytes().text('[').bytes(piece).text(',').bytes(piece).text(',').later(later).text(']')
  expect(json.isWhole).toBe(false)
  expect(() => json.toBuffer()).toThrow('still to be made')
  const chunks = await inChunks(json, 20_000)
  expect(JSON.parse(chunks.join(''))).toEqual(['x'.repeat(20_000), 'x'.repeat(20_000), 'late', 'later'])
  expect(chunks.length).toBeGreaterThan(3)
  expect(await inChunks(new JsonBytes().text('{}'), 1_000)).toEqual(['{}'])
  expect(await inChunks(new JsonBytes(), 1_000)).toEqual([])
})

test('it is empty until something is added', () => {
  expect(new JsonBytes().isEmpty).toBe(true)
  expect(new JsonBytes().append(new JsonBytes()).isEmpty).toBe(true)
  expect(new JsonBytes().text('1').isEmpty).toBe(false)
  expect(new JsonBytes().bytes(Buffer.from('1')).isEmpty).toBe(false)
  const nothing = async function* (): AsyncGenerator<JsonBytes> {}
  expect(new JsonBytes().later(nothing).isEmpty).toBe(false)
})

test('nothing here keeps an answer alive that was read, or given up for another one', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const bytes = () => new JsonBytes().bytes(Buffer.from('[1]'))
  const ways: Readonly<Record<string, (json: JsonBytes) => unknown>> = {
    whole: (json) => json.whole(),
    'in chunks': (json) => inChunks(json, 10),
    'into another': (json) => new JsonBytes().append(json).toBuffer(),
    'not at all': () => bytes().toBuffer(),
  }
  for (const [name, read] of Object.entries(ways)) {
    const answers: WeakRef<JsonBytes>[] = []
    const write = async (): Promise<void> => {
      const json = bytes()
      answers.push(new WeakRef(json))
      await read(json)
    }
    await write()
    // What a weak reference showed lives until its task ends.
    await later()
    collect()
    expect([name, answers[0]!.deref()]).toEqual([name, undefined])
  }
})

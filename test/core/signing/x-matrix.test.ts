import { expect, it, test } from 'vitest'
import type { ServerName } from '../../../src/core/ids.ts'
import { isXMatrix, readXMatrix, writeXMatrix } from '../../../src/core/signing/x-matrix.ts'
import { cpuMs } from '../../support/slowness.ts'

const SAID = { origin: 'o.example', destination: 'd.example', keyId: 'ed25519:1', signature: 'c2ln' }
const USUAL = 'X-Matrix origin="o.example",destination="d.example",key="ed25519:1",sig="c2ln"'

it.each<[string, string]>([
  ['as servers write it', USUAL],
  ['in another order', 'X-Matrix sig="c2ln",key="ed25519:1",destination="d.example",origin="o.example"'],
  ['without quotes, colons included', 'X-Matrix origin=o.example,destination=d.example,key=ed25519:1,sig=c2ln'],
  ['with blanks', 'X-Matrix  origin = "o.example" ,\tdestination="d.example", key="ed25519:1" , sig="c2ln"'],
  ['in other cases', 'x-matrix ORIGIN="o.example",Destination="d.example",KEY="ed25519:1",Sig="c2ln"'],
  ['with what is escaped', 'X-Matrix origin="o\\.example",destination="d.example",key="ed25519\\:1",sig="c2ln"'],
  ['with parameters that are not known', `${USUAL},algorithm="x",more=1`],
  ['with a comma at its end', `${USUAL},`],
])('a header %s', (_how, header) => {
  expect(isXMatrix(header)).toBe(true)
  expect(readXMatrix(header)).toEqual(SAID)
})

test('a header of a server that does not say the destination yet', () => {
  const header = USUAL.replace('destination="d.example",', '')
  expect(readXMatrix(header)).toEqual({ ...SAID, destination: undefined })
  const { destination: _, ...rest } = SAID
  expect(writeXMatrix({ ...rest, origin: rest.origin as ServerName, destination: undefined })).toBe(header)
})

it.each<[string, string]>([
  ['another scheme', 'Bearer origin="o.example"'],
  ['no parameters', 'X-Matrix '],
  ['no origin', 'X-Matrix key="ed25519:1",sig="c2ln"'],
  ['no key', 'X-Matrix origin="o.example",sig="c2ln"'],
  ['no signature', 'X-Matrix origin="o.example",key="ed25519:1"'],
  ['an origin that is none', USUAL.replace('o.example', 'o/example')],
  ['a parameter twice', `${USUAL},origin="p.example"`],
  ['a parameter twice, in other cases', `${USUAL},Origin="p.example"`],
  ['a quote that is not closed', USUAL.slice(0, -1)],
  ['no comma between two', USUAL.replace('",key', '" key')],
  ['very many parameters', `${USUAL}${',a=1'.repeat(2_000)}`],
])('a header with %s is none', (_what, header) => {
  expect(readXMatrix(header)).toBeUndefined()
})

test('what is written is read, and a long header costs no more than its length', () => {
  const header = writeXMatrix({ ...SAID, origin: SAID.origin as ServerName })
  expect(header).toBe(USUAL)
  const took = cpuMs(() => {
    expect(readXMatrix(`X-Matrix ${'a '.repeat(1_900)}`)).toBeUndefined()
    expect(readXMatrix(`X-Matrix origin="${'\\'.repeat(3_900)}`)).toBeUndefined()
  })
  expect(took).toBeLessThan(100)
})

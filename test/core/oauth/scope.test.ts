import { describe, expect, it } from 'vitest'
import { readScope } from '../../../src/core/oauth/scope.ts'

describe('a scope', () => {
  it.each(['urn:matrix:client:', 'urn:matrix:org.matrix.msc2967.client:'])(
    'of %s is granted as it is spelled',
    (of) => {
      const granted = `${of}api:* ${of}device:ABC.def~1`
      expect(readScope(granted)).toEqual({ granted, deviceId: 'ABC.def~1' })
      expect(readScope(`openid ${granted} email`)).toEqual({ granted, deviceId: 'ABC.def~1' })
    },
  )

  it.each([
    '',
    'urn:matrix:client:api:*',
    'urn:matrix:client:device:ABC',
    'urn:matrix:client:api:* urn:matrix:client:device:',
    'urn:matrix:client:api:* urn:matrix:client:device:A urn:matrix:client:device:B',
    'urn:matrix:client:api:* urn:matrix:org.matrix.msc2967.client:device:A',
    'urn:matrix:client:api:* urn:matrix:client:device:A urn:matrix:org.matrix.msc2967.client:api:*',
    'urn:matrix:client:api:*x urn:matrix:client:device:A',
    'xurn:matrix:client:api:* urn:matrix:client:device:A',
    'urn:matrix:client:api:* urn:matrix:client:device:"',
    'urn:matrix:client:api:* urn:matrix:client:device:\u00e4',
    `urn:matrix:client:api:* urn:matrix:client:device:${'A'.repeat(256)}`,
  ])('%j is refused', (scope) => {
    expect(readScope(scope)).toEqual({ problem: expect.any(String) })
  })
})

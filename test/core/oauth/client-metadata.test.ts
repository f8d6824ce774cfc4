import { describe, expect, it } from 'vitest'
import { ClientMetadataError, readClientMetadata } from '../../../src/core/oauth/client-metadata.ts'

const CLIENT = { client_uri: 'https://example.com/', redirect_uris: ['https://example.com/cb'] }

const codeOf = (body: object): string => {
  try {
    readClientMetadata(body as never)
    return 'accepted'
  } catch (error) {
    if (error instanceof ClientMetadataError) return error.code
    throw error
  }
}

describe('redirect addresses (client-server API, "Redirect URI validation")', () => {
  it.each([
    ['web', 'https://example.com/cb'],
    ['web', 'https://example.com'],
    ['web', 'https://app.example.com:5173/?a=b'],
    ['web', 'https://example.com/cb?no_universal_links=true'],
    ['native', 'https://example.com/cb'],
    ['native', 'com.example.app:/cb'],
    ['native', 'com.example:/cb'],
    ['native', 'com.example:cb'],
    ['native', 'http://localhost/cb'],
    ['native', 'http://127.0.0.1/cb'],
    ['native', 'http://[::1]/cb'],
    // Some apps register a port. It is not compared later.
    ['native', 'http://localhost:3001/login'],
  ])('%s: %s', (application_type, uri) => {
    expect(codeOf({ ...CLIENT, application_type, redirect_uris: [uri] })).toBe('accepted')
  })

  it.each([
    ['web', 'http://example.com/cb'],
    ['web', 'http://localhost/'],
    ['web', 'com.example.app:/cb'],
    ['web', 'https://example.com/cb#f'],
    ['web', 'https://example.com/cb#'],
    ['web', 'https://evil.test/cb'],
    ['web', 'https://evilexample.com/cb'],
    ['web', 'https://example.com.evil.test/cb'],
    ['web', 'https://example.com./cb'],
    ['web', 'https://user@example.com/cb'],
    ['web', 'https://example.com@evil.test/cb'],
    ['web', 'https://example.com\\@evil.test/cb'],
    ['web', 'https://example.com/%2e%2e/cb'],
    ['web', 'https://example.com/a/../cb'],
    ['web', 'https://example.com/c\tb'],
    ['web', 'https://EXAMPLE.com/cb'],
    ['web', 'https:example.com/cb'],
    ['web', 'https://exämple.com/cb'],
    ['web', 'https://192.0.2.1/cb'],
    ['web', 'javascript:alert(1)'],
    ['web', 'data:text/html,x'],
    ['native', 'example:/cb'],
    ['native', 'com.example.app://cb'],
    ['native', 'com.exampleevil:/cb'],
    ['native', 'com.examplefoo:/'],
    ['native', 'io.element:/cb'],
    ['native', 'javascript:alert(1)'],
    ['native', 'ftp://example.com/cb'],
    ['native', 'https://localhost/cb'],
    ['native', 'http://localhost.evil.test/cb'],
    ['native', 'http://localhost@evil.test/cb'],
    ['native', 'http://192.0.2.1/cb'],
    ['native', 'http://example.com/cb'],
    ['native', ''],
    ['native', `com.example:/${'x'.repeat(2_000)}`],
  ])('%s: not %s', (application_type, uri) => {
    expect(codeOf({ ...CLIENT, application_type, redirect_uris: [uri] })).toBe('invalid_redirect_uri')
  })
})

describe('what else a client says', () => {
  it.each([
    [{ client_uri: undefined }],
    [{ client_uri: 'http://example.com/' }],
    [{ client_uri: 'https://user:pw@example.com/' }],
    [{ client_uri: 'https://192.0.2.1/' }],
    [{ client_uri: 'https://localhost/' }],
    [{ client_uri: 7 }],
    [{ application_type: 'desktop' }],
    [{ token_endpoint_auth_method: 'client_secret_basic' }],
    [{ grant_types: ['password'] }],
    [{ grant_types: 'authorization_code' }],
  ])('%j is refused', (changes) => {
    expect(codeOf({ ...CLIENT, ...changes })).toBe('invalid_client_metadata')
  })

  it('unknown grants, responses and keys are dropped, and links to other domains', () => {
    const metadata = readClientMetadata({
      ...CLIENT,
      grant_types: ['authorization_code', 'implicit', 'urn:x'],
      response_types: ['code', 'token'],
      logo_uri: 'https://cdn.example.com/logo.png',
      tos_uri: 'https://evil.test/tos',
      'client_name#de': 'Eine App',
      contacts: ['a@example.com'],
    })
    expect(metadata).toEqual({
      application_type: 'web',
      client_uri: 'https://example.com/',
      logo_uri: 'https://cdn.example.com/logo.png',
      redirect_uris: ['https://example.com/cb'],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    })
  })

  it('a client for devices needs no address', () => {
    const grant = 'urn:ietf:params:oauth:grant-type:device_code'
    const metadata = readClientMetadata({ client_uri: 'https://example.com/', grant_types: [grant] })
    expect(metadata.redirect_uris).toEqual([])
    expect(metadata.response_types).toEqual([])
    expect(metadata.grant_types).toEqual([grant, 'refresh_token'])
  })

  it('a name loses what changes the direction of writing, and its end', () => {
    const metadata = readClientMetadata({ ...CLIENT, client_name: `\u202eevil\n${'x'.repeat(300)}` })
    expect(metadata.client_name).toBe(`evil ${'x'.repeat(95)}`)
  })
})

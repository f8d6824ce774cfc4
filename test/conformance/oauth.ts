/** What the standards of OAuth demand of an authorisation server, and which test shows it. */
export interface Must {
  /** Where it stands. */
  readonly source: string
  readonly must: string
  /** `test/oauth/musts.test.ts` */
  readonly file: string
  /** What stands in that file: the title of a test, or the first words of its case in a list. */
  readonly test: string
}

const CODE = 'test/oauth/code-grant.test.ts'
const DEVICE = 'test/oauth/device-grant.test.ts'
const METADATA = 'test/core/oauth/client-metadata.test.ts'
const MUSTS = 'test/oauth/musts.test.ts'
const PAGES = 'test/oauth/pages.test.ts'
const REGISTER = 'test/oauth/registration.test.ts'
const TOKENS = 'test/oauth/tokens.test.ts'

const LINES: readonly (readonly [source: string, must: string, file: string, test: string])[] = [
  [
    'RFC 8414, 2',
    'The issuer is an https address without query and fragment.',
    MUSTS,
    'has an issuer without query and fragment',
  ],
  [
    'RFC 8414, 2',
    'The metadata names endpoints, response types and challenge methods as they are.',
    REGISTER,
    'names everything that clients check',
  ],
  [
    'RFC 6749, 3.1',
    'Parameters that nobody knows are ignored; empty ones count for nothing.',
    MUSTS,
    'may have parameters that nobody knows',
  ],
  ['RFC 6749, 3.1', 'A parameter stands once.', CODE, 'a parameter twice'],
  ['RFC 6749, 3.1.2', 'A redirect address has no fragment.', METADATA, "['web', 'https://example.com/cb#f']"],
  ['RFC 6749, 3.1.2.4', 'An unknown client: no redirect.', CODE, "['an unknown client'"],
  ['RFC 6749, 3.1.2.4', 'No client: no redirect.', CODE, "['no client', { client_id: undefined }]"],
  ['RFC 6749, 3.1.2.4', 'No redirect address: no redirect.', CODE, "['no address', { redirect_uri: undefined }]"],
  [
    'RFC 6749, 3.1.2.4',
    'An address that was not registered: no redirect.',
    CODE,
    "['another address', { redirect_uri: 'https://app.example.com/other' }]",
  ],
  ['RFC 9700, 4.1.3', 'Addresses are compared as texts: another host', CODE, "['another host'"],
  ['RFC 9700, 4.1.3', 'more at the end', CODE, "['an address with more at its end'"],
  ['RFC 9700, 4.1.3', 'another query', CODE, "['an address with a query that was not registered'"],
  ['RFC 9700, 4.1.3', 'capital letters in the host', CODE, "['another spelling of the host'"],
  ['RFC 9700, 4.1.3', 'an encoded path.', CODE, "['an encoded path'"],
  ['RFC 8252, 7.3', 'A native app listens at any port of its own machine.', CODE, 'listen at any port of this machine'],
  ['RFC 6749, 4.1.2', 'The state comes back as it was.', MUSTS, 'gives the state back as it came'],
  ['RFC 9207, 2', 'Each answer says whose it is (mix-up): a code', MUSTS, 'says whose answer it is'],
  ['RFC 9207, 2', 'and an error.', CODE, "expect(answer.get('iss')).toBe(world.metadata.issuer)"],
  [
    'RFC 6749, 4.1.2.1',
    'A person who does not allow it: `access_denied`.',
    CODE,
    'tells the client when the person does not allow it',
  ],
  ['RFC 6749, 4.1.2.1', 'An unknown response type: `unsupported_response_type`.', CODE, "['an ID token'"],
  ['RFC 9700, 2.1.2', 'No implicit grant.', CODE, "['an implicit token'"],
  [
    'RFC 6749, 3.3',
    'A scope that cannot be: `invalid_scope`.',
    CODE,
    "['no scope', { scope: undefined }, 'invalid_scope']",
  ],
  ['Matrix, scopes', 'One device in one spelling, with the API: two', CODE, "['two devices'"],
  ['Matrix, scopes', 'none', CODE, "['no device'"],
  ['Matrix, scopes', 'without the API', CODE, "['a device without the API'"],
  ['Matrix, scopes', 'two spellings.', CODE, "'two spellings'"],
  [
    'Multiple Response Types, 2.1',
    'An answer in the fragment has nothing in the query.',
    MUSTS,
    'has nothing of it in the query',
  ],
  ['RFC 9101, 10', 'No request hidden in another.', MUSTS, "it.each(['request', 'request_uri'])"],
  [
    'RFC 9700, 4.12',
    'Redirects after a form are 303.',
    MUSTS,
    'leads on by redirects that no browser repeats a form for',
  ],
  [
    'RFC 9700, 4.2.4',
    'Pages tell no other site their address.',
    PAGES,
    "expect(headers.get('referrer-policy')).toBe('no-referrer')",
  ],
  ['RFC 9700, 4.16', 'No page is shown in a frame (clickjacking).', PAGES, 'as a frame, or with a script'],
  [
    'RFC 6749, 10.12',
    'No other site gives a consent (CSRF): without the mark of the form',
    PAGES,
    "['without the mark of its form'",
  ],
  ['RFC 6749, 10.12', "with another browser's mark", PAGES, 'with the mark of another browser'],
  [
    'RFC 6749, 10.12',
    'as browsers say where a form comes from.',
    PAGES,
    "['from another site', {}, { 'sec-fetch-site': 'cross-site' }]",
  ],
  [
    'RFC 6749, 10.12',
    'Nobody is signed in as somebody else (login CSRF).',
    PAGES,
    'to sign somebody in as somebody else',
  ],
  [
    'RFC 9700, 4.7',
    'An authorisation goes on in the browser that began it.',
    PAGES,
    'and cannot be continued in another',
  ],
  ['RFC 9700, 4.7', 'Two in one browser do not mix.', PAGES, 'and two in one browser do not mix'],
  [
    'RFC 9700, 4.11',
    'No open redirect after signing in.',
    PAGES,
    'after signing in, people go only to pages of this server',
  ],
  ['RFC 6819, 5.1.5', 'A sign-in gives a new secret (fixation).', PAGES, 'gets a secret that nobody could know before'],
  ['RFC 6819, 5.1.5', 'Cookies go over TLS only, and to no script.', MUSTS, 'sets cookies that go over TLS only'],
  ['RFC 6749, 3.1', 'Nobody is signed in by an address.', MUSTS, 'signs nobody in by what stands in its address'],
  [
    'RFC 8252, 8.6',
    'A person is asked each time: an app cannot be told from its like.',
    CODE,
    'asks again each time, although the browser is signed in',
  ],
  [
    'RFC 6819, 4.4.1.4',
    'A name proves nothing, and is no markup.',
    CODE,
    'proves nothing: the domain is what people see first',
  ],
  ['RFC 7636, 4.4.1', 'No challenge: `invalid_request`.', CODE, "['no challenge'"],
  ['RFC 9700, 2.1.1', 'No plain challenge (downgrade)', CODE, "['a plain challenge'"],
  [
    'RFC 9700, 2.1.1',
    'also not by leaving out the method.',
    CODE,
    "['a challenge without a method, which means plain'",
  ],
  ['RFC 7636, 4.6', 'Another verifier: `invalid_grant`.', CODE, "['another verifier'"],
  ['RFC 9700, 2.1.1', 'No verifier: `invalid_grant`.', CODE, "['no verifier'"],
  [
    'RFC 7636, 4.1',
    'A verifier has 43 to 128 of the characters that are allowed.',
    MUSTS,
    'takes no verifier that is %s, even if it fits',
  ],
  [
    'RFC 6749, 4.1.2',
    'A code is used once; a second use ends its tokens.',
    CODE,
    'is good once: a second use ends the session of the first',
  ],
  [
    'RFC 6749, 4.1.2',
    'also when both come at one moment.',
    CODE,
    'is good once, also for two that ask at the same moment',
  ],
  ['RFC 6749, 4.1.2', 'A code lives for a short time.', CODE, 'is good for a minute'],
  ['RFC 6749, 4.1.2', 'A code belongs to its client.', CODE, 'belongs to its client'],
  [
    'RFC 6749, 4.1.3',
    'The redirect address is the one of the request: another',
    CODE,
    "['another address', { redirect_uri: 'https://app.example.com/other' }],\n    ['a made-up code'",
  ],
  ['RFC 6749, 4.1.3', 'or none.', CODE, 'needs the address again'],
  ['RFC 6749, 5.2', 'A code that was never given: `invalid_grant`.', CODE, "['a made-up code'"],
  ['RFC 6749, 5.1', 'No cache keeps what the token endpoint says.', MUSTS, 'answers with what no cache may keep'],
  [
    'RFC 6749, 3.2',
    'POST only, and nothing from the address.',
    MUSTS,
    'takes nothing from the address, and no other method',
  ],
  ['RFC 6749, 3.2', 'A parameter stands once there.', TOKENS, 'takes no parameter twice'],
  ['RFC 6749, 4.1.3', 'Forms only.', TOKENS, 'takes forms only'],
  ['RFC 6749, 5.2', 'An unknown client: `invalid_client`.', MUSTS, 'does not know a client that did not register'],
  [
    'RFC 9700, 2.4',
    'No grant of passwords, and no other that is not there.',
    MUSTS,
    "it.each(['password', 'client_credentials'",
  ],
  ['RFC 6749, 6', 'A refresh token is bound to its client.', TOKENS, 'is for the client that the session belongs to'],
  ['RFC 6749, 6', 'A refresh does not widen the scope.', TOKENS, 'does not widen the scope'],
  [
    'RFC 9700, 4.14.2',
    'Refresh tokens rotate; one that was used ends the session.',
    TOKENS,
    'with a used token ends the session and its device',
  ],
  [
    'Matrix, refresh',
    'A lost answer can be asked for again.',
    TOKENS,
    'can be repeated as long as its answer was not used',
  ],
  [
    'RFC 9700, 4.14.2',
    'Many at one moment leave one line of tokens.',
    MUSTS,
    'by many leaves one line of tokens, and a session that goes on',
  ],
  ['RFC 6749, 10.3', 'Neither token does what the other is for.', MUSTS, 'keeps the two kinds of tokens apart'],
  [
    'RFC 7009, 2.1',
    'Revoking a refresh token ends the access token',
    TOKENS,
    "it.each(['access_token', 'refresh_token'])('of the %s ends all of the session'",
  ],
  ['RFC 7009, 2.1', 'whatever the hint says.', TOKENS, 'works with a wrong hint, a wrong client and without one'],
  ['RFC 7009, 2.2', 'An unknown token: 200.', TOKENS, 'of an unknown token succeeds, and without a token is an error'],
  [
    'RFC 8628, 3.2',
    'The answer has both codes, the addresses, the time and the interval.',
    DEVICE,
    'is signed in by a person who enters the code elsewhere',
  ],
  ['RFC 8628, 3.5', '`authorization_pending`, then `slow_down`', DEVICE, 'is told to ask less often'],
  ['RFC 8628, 3.5', '`access_denied`', DEVICE, 'is told when the person refuses it'],
  ['RFC 8628, 3.5', '`expired_token`.', DEVICE, 'waits for ten minutes'],
  ['RFC 8628, 3.4', 'A device code belongs to its client.', DEVICE, 'must be the one that began'],
  [
    'RFC 8628, 3.3',
    'A link alone signs no device in; a code is used once.',
    MUSTS,
    'is not signed in by a link alone, and by its code once',
  ],
  [
    'RFC 8628, 6.1',
    'Codes are random, of letters that nobody confuses.',
    MUSTS,
    'gets codes that differ each time, from letters that nobody confuses',
  ],
  ['RFC 6749, 5.2', 'A client without the grant: `unauthorized_client`.', DEVICE, 'needs a client that may'],
  ['RFC 7591, 3.2.1', '201, and what is kept.', REGISTER, 'answers with what is kept, and 201'],
  [
    'RFC 7591, 3.2.2',
    'A bad address: `invalid_redirect_uri`; bad metadata: `invalid_client_metadata`.',
    REGISTER,
    "'invalid_redirect_uri'",
  ],
  [
    'RFC 7591, 3.2.1',
    'A public client gets no secret.',
    MUSTS,
    'gives no secret that an app could not keep, and is not cached',
  ],
  ['RFC 7591, 5', 'Registrations are bounded.', REGISTER, 'leave few clients behind, and keep nobody else out'],
  [
    'RFC 8252, 7.1',
    "A private scheme begins with the client's own domain.",
    METADATA,
    "['native', 'com.exampleevil:/cb']",
  ],
  ['RFC 8252, 8.3', 'Plain http only for an app on its own machine.', METADATA, "['web', 'http://example.com/cb']"],
]

export const MUSTS_OF_OAUTH: readonly Must[] = LINES.map(([source, must, file, test]) => ({ source, must, file, test }))

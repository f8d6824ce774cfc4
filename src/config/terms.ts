import { Type } from '../core/shapes.ts'
import { section, text } from './parts.ts'

/** Names that are safe in a path. */
const NAME = '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$'

const policy = Type.Object(
  {
    id: Type.String({ pattern: NAME }),
    version: Type.String({ pattern: NAME }),
    languages: Type.Array(
      Type.Object(
        {
          language: Type.String({ pattern: '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$' }),
          name: Type.String({ minLength: 1 }),
          url: Type.Optional(Type.String({ pattern: '^https?://[^\\s]+$' })),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 100 },
    ),
  },
  { additionalProperties: false },
)

const EXAMPLE = {
  id: 'privacy_policy',
  version: '1.2',
  languages: [{ language: 'en', name: 'Privacy Policy', url: 'https://example.org/privacy-1.2-en.html' }],
}

/** Policies that people must accept. */
export const termsSection = (description: string, policies: string) =>
  section(description, {
    directory: text(
      'Texts of the policies that have no `url`: `<id>-<version>-<language>.txt`, with paragraphs between empty lines, headings after `#` and lists after `-`.',
      { default: 'policies', path: true, minLength: 1 },
    ),
    policies: Type.Array(policy, { description: policies, default: [], maxItems: 100, example: [EXAMPLE] }),
  })

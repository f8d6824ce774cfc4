import type { Config } from '../../config/schema.ts'
import type { TemplateValue } from '../../core/template.ts'
import { PAGES, type PageName, type PageValue } from '../../domain/page-rules.ts'
import { loadPages } from '../../domain/pages.ts'
import { identityBaseUrl, publicBaseUrl } from '../../domain/public-address.ts'
import { UsageError } from '../command.ts'
import { wantedLanguages } from './wanted-languages.ts'

export const PAGE_NAMES = Object.keys(PAGES) as PageName[]

/** A page with sample values, made with the current templates and configuration. */
export async function previewPage(
  config: Config,
  options: { readonly name: string | undefined; readonly language: string | undefined },
): Promise<string> {
  const wanted = options.name ?? 'link-confirmed'
  const name = PAGE_NAMES.find((each) => each === wanted || each === `${wanted}.page`)
  if (name === undefined) throw new UsageError(`there is no "${wanted}"; known are ${PAGE_NAMES.join(', ')}`)
  const pages = await loadPages(config)
  const languages = wantedLanguages(options.language, pages.languages)
  const all = samples(config, name)
  const values = Object.fromEntries(PAGES[name].values.map((value) => [value, all[value]]))
  return pages.render(name, values, { languages }).html
}

const ITEM = {
  name: 'Example & Sons',
  initial: 'E',
  link: 'https://example.org/sample',
  language: 'en',
  version: '1.0',
}

/** Sample values. Others are empty: problems, and alternatives to a value that is set. */
function samples(config: Config, page: PageName): Partial<Record<PageValue<PageName>, TemplateValue>> {
  const user = `@alice:${config.server_name}`
  return {
    ...ITEM,
    ...(page === 'policy.page'
      ? { name: 'Privacy Policy', text: '<p>We keep what you write &#38; nothing else.</p>' }
      : {}),
    address: page === 'welcome.page' ? publicBaseUrl(config) : identityBaseUrl(config),
    again: 'https://example.org/sample',
    choices: [ITEM, { ...ITEM, name: 'Other <Service>', initial: 'O' }],
    client: 'app.example.org',
    client_address: 'https://app.example.org/',
    display_name: 'Alice & "Bob" <3',
    email: 'somebody@example.org',
    errcode: 'M_SAMPLE',
    form: '<form method="post">',
    is_new: 'yes',
    is_open: 'yes',
    languages: [{ ...ITEM, language: 'de', name: 'Datenschutz' }],
    next_link: 'https://app.example.org/',
    number: '+44 7400 123456',
    policies: [{ ...ITEM, name: 'Privacy Policy', texts: [{ ...ITEM, name: 'Privacy Policy' }] }],
    provider: 'Example & Sons',
    removes_devices: 'yes',
    user_id: user,
    username: 'alice',
    version: '1.0',
    widget: '<div></div>',
  }
}

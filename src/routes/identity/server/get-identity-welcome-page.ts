import { preferredLanguages } from '../../../core/languages.ts'
import { identityPolicies } from '../../../domain/identity/policies.ts'
import { identityBaseUrl } from '../../../domain/public-address.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { pageReply } from '../../web/page.ts'

/** The page at the address of an identity service without a homeserver. */
export const getIdentityWelcomePage = endpoint('GET /', { auth: 'none' }, ({ acceptLanguage }, services) => {
  const { config, version } = services
  const languages = preferredLanguages(acceptLanguage)
  const policies = identityPolicies(config).flatMap(({ texts }) => {
    const [best = texts[0]] = languages.flatMap((language) => texts.filter((text) => text.language === language))
    return best === undefined ? [] : [{ name: best.name, link: best.url }]
  })
  const values = { address: identityBaseUrl(config), version, policies }
  return pageReply(services, 'welcome-identity.page', values, { acceptLanguage })
})

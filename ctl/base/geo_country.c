// SPDX-License-Identifier: GPL-2.0-only
// Country codes: ISO 3166-1 alpha-2, and XK, which databases use for Kosovo.
#include "ctl/base/geo_country.h"

#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"

static const struct {
	const char *code, *name;
} countries[] = {
	{"AD", "Andorra"},
	{"AE", "United Arab Emirates"},
	{"AF", "Afghanistan"},
	{"AG", "Antigua and Barbuda"},
	{"AI", "Anguilla"},
	{"AL", "Albania"},
	{"AM", "Armenia"},
	{"AO", "Angola"},
	{"AQ", "Antarctica"},
	{"AR", "Argentina"},
	{"AS", "American Samoa"},
	{"AT", "Austria"},
	{"AU", "Australia"},
	{"AW", "Aruba"},
	{"AX", "Aland Islands"},
	{"AZ", "Azerbaijan"},
	{"BA", "Bosnia and Herzegovina"},
	{"BB", "Barbados"},
	{"BD", "Bangladesh"},
	{"BE", "Belgium"},
	{"BF", "Burkina Faso"},
	{"BG", "Bulgaria"},
	{"BH", "Bahrain"},
	{"BI", "Burundi"},
	{"BJ", "Benin"},
	{"BL", "Saint Barthelemy"},
	{"BM", "Bermuda"},
	{"BN", "Brunei"},
	{"BO", "Bolivia"},
	{"BQ", "Caribbean Netherlands"},
	{"BR", "Brazil"},
	{"BS", "Bahamas"},
	{"BT", "Bhutan"},
	{"BV", "Bouvet Island"},
	{"BW", "Botswana"},
	{"BY", "Belarus"},
	{"BZ", "Belize"},
	{"CA", "Canada"},
	{"CC", "Cocos Islands"},
	{"CD", "Congo Democratic Republic"},
	{"CF", "Central African Rep."},
	{"CG", "Congo"},
	{"CH", "Switzerland"},
	{"CI", "Cote d'Ivoire"},
	{"CK", "Cook Islands"},
	{"CL", "Chile"},
	{"CM", "Cameroon"},
	{"CN", "China"},
	{"CO", "Colombia"},
	{"CR", "Costa Rica"},
	{"CU", "Cuba"},
	{"CV", "Cape Verde"},
	{"CW", "Curacao"},
	{"CX", "Christmas Island"},
	{"CY", "Cyprus"},
	{"CZ", "Czechia"},
	{"DE", "Germany"},
	{"DJ", "Djibouti"},
	{"DK", "Denmark"},
	{"DM", "Dominica"},
	{"DO", "Dominican Republic"},
	{"DZ", "Algeria"},
	{"EC", "Ecuador"},
	{"EE", "Estonia"},
	{"EG", "Egypt"},
	{"EH", "Western Sahara"},
	{"ER", "Eritrea"},
	{"ES", "Spain"},
	{"ET", "Ethiopia"},
	{"FI", "Finland"},
	{"FJ", "Fiji"},
	{"FK", "Falkland Islands"},
	{"FM", "Micronesia"},
	{"FO", "Faroe Islands"},
	{"FR", "France"},
	{"GA", "Gabon"},
	{"GB", "United Kingdom"},
	{"GD", "Grenada"},
	{"GE", "Georgia"},
	{"GF", "French Guiana"},
	{"GG", "Guernsey"},
	{"GH", "Ghana"},
	{"GI", "Gibraltar"},
	{"GL", "Greenland"},
	{"GM", "Gambia"},
	{"GN", "Guinea"},
	{"GP", "Guadeloupe"},
	{"GQ", "Equatorial Guinea"},
	{"GR", "Greece"},
	{"GS", "South Georgia"},
	{"GT", "Guatemala"},
	{"GU", "Guam"},
	{"GW", "Guinea-Bissau"},
	{"GY", "Guyana"},
	{"HK", "Hong Kong"},
	{"HM", "Heard and McDonald Islands"},
	{"HN", "Honduras"},
	{"HR", "Croatia"},
	{"HT", "Haiti"},
	{"HU", "Hungary"},
	{"ID", "Indonesia"},
	{"IE", "Ireland"},
	{"IL", "Israel"},
	{"IM", "Isle of Man"},
	{"IN", "India"},
	{"IO", "British Indian Ocean Territory"},
	{"IQ", "Iraq"},
	{"IR", "Iran"},
	{"IS", "Iceland"},
	{"IT", "Italy"},
	{"JE", "Jersey"},
	{"JM", "Jamaica"},
	{"JO", "Jordan"},
	{"JP", "Japan"},
	{"KE", "Kenya"},
	{"KG", "Kyrgyzstan"},
	{"KH", "Cambodia"},
	{"KI", "Kiribati"},
	{"KM", "Comoros"},
	{"KN", "Saint Kitts and Nevis"},
	{"KP", "North Korea"},
	{"KR", "South Korea"},
	{"KW", "Kuwait"},
	{"KY", "Cayman Islands"},
	{"KZ", "Kazakhstan"},
	{"LA", "Laos"},
	{"LB", "Lebanon"},
	{"LC", "Saint Lucia"},
	{"LI", "Liechtenstein"},
	{"LK", "Sri Lanka"},
	{"LR", "Liberia"},
	{"LS", "Lesotho"},
	{"LT", "Lithuania"},
	{"LU", "Luxembourg"},
	{"LV", "Latvia"},
	{"LY", "Libya"},
	{"MA", "Morocco"},
	{"MC", "Monaco"},
	{"MD", "Moldova"},
	{"ME", "Montenegro"},
	{"MF", "Saint Martin"},
	{"MG", "Madagascar"},
	{"MH", "Marshall Islands"},
	{"MK", "North Macedonia"},
	{"ML", "Mali"},
	{"MM", "Myanmar"},
	{"MN", "Mongolia"},
	{"MO", "Macao"},
	{"MP", "Northern Mariana Islands"},
	{"MQ", "Martinique"},
	{"MR", "Mauritania"},
	{"MS", "Montserrat"},
	{"MT", "Malta"},
	{"MU", "Mauritius"},
	{"MV", "Maldives"},
	{"MW", "Malawi"},
	{"MX", "Mexico"},
	{"MY", "Malaysia"},
	{"MZ", "Mozambique"},
	{"NA", "Namibia"},
	{"NC", "New Caledonia"},
	{"NE", "Niger"},
	{"NF", "Norfolk Island"},
	{"NG", "Nigeria"},
	{"NI", "Nicaragua"},
	{"NL", "Netherlands"},
	{"NO", "Norway"},
	{"NP", "Nepal"},
	{"NR", "Nauru"},
	{"NU", "Niue"},
	{"NZ", "New Zealand"},
	{"OM", "Oman"},
	{"PA", "Panama"},
	{"PE", "Peru"},
	{"PF", "French Polynesia"},
	{"PG", "Papua New Guinea"},
	{"PH", "Philippines"},
	{"PK", "Pakistan"},
	{"PL", "Poland"},
	{"PM", "Saint Pierre and Miquelon"},
	{"PN", "Pitcairn"},
	{"PR", "Puerto Rico"},
	{"PS", "Palestine"},
	{"PT", "Portugal"},
	{"PW", "Palau"},
	{"PY", "Paraguay"},
	{"QA", "Qatar"},
	{"RE", "Reunion"},
	{"RO", "Romania"},
	{"RS", "Serbia"},
	{"RU", "Russia"},
	{"RW", "Rwanda"},
	{"SA", "Saudi Arabia"},
	{"SB", "Solomon Islands"},
	{"SC", "Seychelles"},
	{"SD", "Sudan"},
	{"SE", "Sweden"},
	{"SG", "Singapore"},
	{"SH", "Saint Helena"},
	{"SI", "Slovenia"},
	{"SJ", "Svalbard and Jan Mayen"},
	{"SK", "Slovakia"},
	{"SL", "Sierra Leone"},
	{"SM", "San Marino"},
	{"SN", "Senegal"},
	{"SO", "Somalia"},
	{"SR", "Suriname"},
	{"SS", "South Sudan"},
	{"ST", "Sao Tome and Principe"},
	{"SV", "El Salvador"},
	{"SX", "Sint Maarten"},
	{"SY", "Syria"},
	{"SZ", "Eswatini (Swaziland)"},
	{"TC", "Turks and Caicos Is"},
	{"TD", "Chad"},
	{"TF", "French Southern Territories"},
	{"TG", "Togo"},
	{"TH", "Thailand"},
	{"TJ", "Tajikistan"},
	{"TK", "Tokelau"},
	{"TL", "East Timor"},
	{"TM", "Turkmenistan"},
	{"TN", "Tunisia"},
	{"TO", "Tonga"},
	{"TR", "Turkey"},
	{"TT", "Trinidad and Tobago"},
	{"TV", "Tuvalu"},
	{"TW", "Taiwan"},
	{"TZ", "Tanzania"},
	{"UA", "Ukraine"},
	{"UG", "Uganda"},
	{"UM", "US minor outlying islands"},
	{"US", "United States"},
	{"UY", "Uruguay"},
	{"UZ", "Uzbekistan"},
	{"VA", "Vatican"},
	{"VC", "Saint Vincent"},
	{"VE", "Venezuela"},
	{"VG", "British Virgin Islands"},
	{"VI", "US Virgin Islands"},
	{"VN", "Vietnam"},
	{"VU", "Vanuatu"},
	{"WF", "Wallis and Futuna"},
	{"WS", "Samoa"},
	{"XK", "Kosovo"},
	{"YE", "Yemen"},
	{"YT", "Mayotte"},
	{"ZA", "South Africa"},
	{"ZM", "Zambia"},
	{"ZW", "Zimbabwe"},
};

// Common mistakes for a code.
static const struct {
	const char *word, *code;
} others[] = {{"UK", "GB"}, {"EN", "GB"}, {"EL", "GR"}, {"USA", "US"}};

const char *geo_country_name(const char *code)
{
	for (size_t i = 0; i < ARRAY_SIZE(countries); i++)
		if (!strcasecmp(countries[i].code, code))
			return countries[i].name;
	return NULL;
}

static const char *code_of_name(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(countries); i++)
		if (!strcasecmp(countries[i].name, name))
			return countries[i].code;
	return NULL;
}

// The code with its letters exchanged, or one with another letter.
static const char *nearest_code(const char *word)
{
	const char *codes[ARRAY_SIZE(countries)];
	const char swapped[] = {word[1], word[0], '\0'};

	for (size_t i = 0; i < ARRAY_SIZE(countries); i++) {
		codes[i] = countries[i].code;
		if (!strcasecmp(swapped, codes[i]))
			return codes[i];
	}
	return diag_nearest(word, codes, ARRAY_SIZE(codes));
}

const char *geo_country_nearest(const char *word)
{
	const char *names[ARRAY_SIZE(countries)];

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcasecmp(others[i].word, word))
			return others[i].code;
	if (strlen(word) == 2)
		return nearest_code(word);
	for (size_t i = 0; i < ARRAY_SIZE(countries); i++)
		names[i] = countries[i].name;
	return code_of_name(diag_nearest(word, names, ARRAY_SIZE(names)));
}

//! Attributes of an object as bytes that the store keeps with its file.
//!
//! One after the other: a byte for which it is, of metadata its name, and the value; a text has its length before it, in two
//! bytes. A target keeps some hundred bytes of each file, so they are few.

use object_store::{Attribute, AttributeValue, Attributes};

/// The byte of an attribute that a user named.
const METADATA: u8 = 7;

fn code_of(attribute: &Attribute) -> Option<u8> {
    Some(match attribute {
        Attribute::ContentDisposition => 1,
        Attribute::ContentEncoding => 2,
        Attribute::ContentLanguage => 3,
        Attribute::ContentType => 4,
        Attribute::CacheControl => 5,
        Attribute::StorageClass => 6,
        Attribute::Metadata(_) => METADATA,
        // The enumeration may grow.
        _ => return None,
    })
}

fn attribute_of(code: u8, bytes: &mut &[u8]) -> Option<Attribute> {
    Some(match code {
        1 => Attribute::ContentDisposition,
        2 => Attribute::ContentEncoding,
        3 => Attribute::ContentLanguage,
        4 => Attribute::ContentType,
        5 => Attribute::CacheControl,
        6 => Attribute::StorageClass,
        METADATA => Attribute::Metadata(text(bytes)?.to_owned().into()),
        _ => return None,
    })
}

/// The attributes as bytes; `None` if one is of a kind that is not known here, or longer than two bytes count.
pub fn encode(attributes: &Attributes) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (attribute, value) in attributes {
        bytes.push(code_of(attribute)?);
        if let Attribute::Metadata(name) = attribute {
            add(&mut bytes, name)?;
        }
        add(&mut bytes, value.as_ref())?;
    }
    Some(bytes)
}

fn add(bytes: &mut Vec<u8>, text: &str) -> Option<()> {
    bytes.extend_from_slice(&u16::try_from(text.len()).ok()?.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    Some(())
}

/// The attributes in these bytes, up to the first that is none.
pub fn decode(mut bytes: &[u8]) -> Attributes {
    let mut attributes = Attributes::new();
    while let Some((&code, mut rest)) = bytes.split_first() {
        let found = attribute_of(code, &mut rest).and_then(|attribute| Some((attribute, text(&mut rest)?)));
        let Some((attribute, value)) = found else { break };
        attributes.insert(attribute, AttributeValue::from(value.to_owned()));
        bytes = rest;
    }
    attributes
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_survive_their_encoding_and_half_of_one_is_none() {
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::ContentType, "text/html".into());
        attributes.insert(Attribute::Metadata("colour".into()), "blue".into());
        let bytes = encode(&attributes).expect("known attributes");
        assert_eq!(decode(&bytes), attributes);
        assert_eq!(decode(&bytes[..bytes.len() - 1]).len(), 1);
        assert_eq!(decode(&[]), Attributes::new());
        assert_eq!(decode(&[9, 0, 0]), Attributes::new());
    }
}

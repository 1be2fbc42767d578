//! Attributes of an object as bytes that the store keeps with its file: name and value, each with its length before it.

use object_store::{Attribute, AttributeValue, Attributes};

/// What stands before the name of an attribute that a user made up.
const METADATA: &str = "metadata:";

fn name_of(attribute: &Attribute) -> Option<String> {
    Some(match attribute {
        Attribute::ContentDisposition => "content-disposition".to_owned(),
        Attribute::ContentEncoding => "content-encoding".to_owned(),
        Attribute::ContentLanguage => "content-language".to_owned(),
        Attribute::ContentType => "content-type".to_owned(),
        Attribute::CacheControl => "cache-control".to_owned(),
        Attribute::StorageClass => "storage-class".to_owned(),
        Attribute::Metadata(name) => format!("{METADATA}{name}"),
        // The enumeration may grow.
        _ => return None,
    })
}

fn attribute_of(name: &str) -> Option<Attribute> {
    Some(match name {
        "content-disposition" => Attribute::ContentDisposition,
        "content-encoding" => Attribute::ContentEncoding,
        "content-language" => Attribute::ContentLanguage,
        "content-type" => Attribute::ContentType,
        "cache-control" => Attribute::CacheControl,
        "storage-class" => Attribute::StorageClass,
        _ => Attribute::Metadata(name.strip_prefix(METADATA)?.to_owned().into()),
    })
}

/// The attributes as bytes; `None` if one is of a kind that is not known here.
pub fn encode(attributes: &Attributes) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (attribute, value) in attributes {
        for text in [name_of(attribute)?.as_str(), value.as_ref()] {
            bytes.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    Some(bytes)
}

/// The attributes in these bytes, up to the first that is none.
pub fn decode(mut bytes: &[u8]) -> Attributes {
    let mut attributes = Attributes::new();
    while let Some((name, value)) = text(&mut bytes).and_then(|name| Some((name, text(&mut bytes)?))) {
        let Some(attribute) = attribute_of(name) else { break };
        attributes.insert(attribute, AttributeValue::from(value.to_owned()));
    }
    attributes
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
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
    }
}
